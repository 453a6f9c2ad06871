/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are made again and again with the same arguments: the largest eigenvalue of a matrix,
 * whose rows are dealt out to the ranks, by iteration. Run it: khoro run -n 3 -- 07_plans */
#include <khoro/khoro.h>
#include <math.h>

#include "check.h"

enum { size = 12, iterations = 30 };

/* Hilbert's. */
static double element(int i, int j) { return 1.0 / (i + j + 1); }

int main(void) {
  khoroComm_t comm;
  int rank, ranks;
  check(khoroCommInitWorld(&comm), NULL);
  check(khoroCommUserRank(comm, &rank), comm);
  check(khoroCommCount(comm, &ranks), comm);
  if (size % ranks != 0) {
    fprintf(stderr, "07_plans: %d rows do not fall to %d ranks in equal parts\n", size, ranks);
    return 1;
  }
  const int share = size / ranks, first = rank * share;
  double x[size], square = 0, squares = size;
  for (int i = 0; i < size; ++i) x[i] = 1;

  /* quote: begin */
  khoroPlan_t plan; /* of what is called from here on, and not made now */
  check(khoroGroupStart(), NULL);
  check(khoroAllGather(&x[first], x, (size_t)share, khoroFloat64, comm, NULL), comm);
  check(khoroAllReduce(&square, &squares, 1, khoroFloat64, khoroSum, comm, NULL), comm);
  check(khoroPlanCreate(&plan), NULL);

  for (int k = 0; k < iterations; ++k) {
    double y[size] = {0};
    for (int i = first; i < first + share; ++i)
      for (int j = 0; j < size; ++j) y[i] += element(i, j) * x[j] / sqrt(squares);
    square = 0;
    for (int i = first; i < first + share; ++i) x[i] = y[i], square += y[i] * y[i];
    check(khoroPlanLaunch(plan, NULL), comm); /* every rank has x and its length */
  }
  check(khoroPlanDestroy(plan), NULL);
  /* quote: end */

  if (rank == 0) printf("the largest eigenvalue is %.6f\n", sqrt(squares));
  check(khoroCommDestroy(comm), NULL);
  return 0;
}
