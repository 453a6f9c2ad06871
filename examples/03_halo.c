/* SPDX-License-Identifier: Apache-2.0 */
/* Heat on a ring of cells, of which each rank holds a row: in each step neighbours exchange the
 * cells at their ends. Run it: khoro run -n 4 -- 03_halo */
#include <khoro/khoro.h>
#include <string.h>

#include "check.h"

enum { cells = 100, steps = 500 };

/* quote: begin */
/* Sends the first and the last cell to the ranks beside, and gets theirs on both sides of the row.
 * One after the other such calls would wait for each other all round the ring; those of a group
 * begin together. */
static void exchange(double* row, int rank, int ranks, khoroComm_t comm) {
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  check(khoroGroupStart(), NULL);
  check(khoroSend(&row[1], 1, khoroFloat64, left, comm, NULL), comm);
  check(khoroSend(&row[cells], 1, khoroFloat64, right, comm, NULL), comm);
  check(khoroRecv(&row[cells + 1], 1, khoroFloat64, right, comm, NULL), comm);
  check(khoroRecv(&row[0], 1, khoroFloat64, left, comm, NULL), comm);
  check(khoroGroupEnd(), comm);
}
/* quote: end */

int main(void) {
  khoroComm_t comm;
  int rank, ranks;
  check(khoroCommInitWorld(&comm), NULL);
  check(khoroCommUserRank(comm, &rank), comm);
  check(khoroCommCount(comm, &ranks), comm);

  double row[cells + 2] = {0}, next[cells + 2] = {0};
  if (rank == 0) row[1] = 500; /* these two cells are neighbours */
  if (rank == ranks - 1) row[cells] = 500;
  for (int step = 0; step < steps; ++step) {
    exchange(row, rank, ranks, comm);
    for (int i = 1; i <= cells; ++i)
      next[i] = row[i] + 0.25 * (row[i - 1] - 2 * row[i] + row[i + 1]);
    memcpy(row, next, sizeof row);
  }

  double mine = 0, all = 0;
  for (int i = 1; i <= cells; ++i) mine += row[i];
  check(khoroReduce(&mine, &all, 1, khoroFloat64, khoroSum, 0, comm, NULL), comm);
  printf("rank %d has %.1f\n", rank, mine);
  if (rank == 0) printf("of %.1f in all\n", all);

  check(khoroCommDestroy(comm), NULL);
  return 0;
}
