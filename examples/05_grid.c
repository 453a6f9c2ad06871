/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as a grid of two rows, with a communicator for each row and each column: y = A x, where
 * every rank holds a block of the matrix A. Run it: khoro run -n 6 -- 05_grid */
#include <khoro/khoro.h>

#include "check.h"

enum { rows = 2, block = 3 };

/* quote: begin */
/* The ranks that name the same color are together, in the order of the key. */
static void make_grid(khoroComm_t world, int row, int column, khoroComm_t* of_row,
                      khoroComm_t* of_column) {
  check(khoroCommSplit(world, row, column, of_row, NULL), world);
  check(khoroCommSplit(world, column, row, of_column, NULL), world);
}
/* quote: end */

int main(void) {
  khoroComm_t world, of_row, of_column;
  int rank, ranks;
  check(khoroCommInitWorld(&world), NULL);
  check(khoroCommUserRank(world, &rank), world);
  check(khoroCommCount(world, &ranks), world);
  if (ranks % rows != 0) {
    fprintf(stderr, "05_grid: %d ranks are no grid of %d rows\n", ranks, rows);
    return 1;
  }
  const int columns = ranks / rows, row = rank / columns, column = rank % columns;
  make_grid(world, row, column, &of_row, &of_column);

  /* x comes down each column from its first rank: here x[j] = j + 1. */
  double x[block];
  for (int j = 0; row == 0 && j < block; ++j) x[j] = column * block + j + 1;
  check(khoroBroadcast(x, x, block, khoroFloat64, 0, of_column, NULL), of_column);

  /* Each rank has its part of the sums, which come together along the row: here A[i][j] = i + 1. */
  double part[block] = {0}, y[block];
  for (int i = 0; i < block; ++i)
    for (int j = 0; j < block; ++j) part[i] += (row * block + i + 1) * x[j];
  check(khoroReduce(part, y, block, khoroFloat64, khoroSum, 0, of_row, NULL), of_row);
  if (column == 0) printf("row %d: y = %g %g %g\n", row, y[0], y[1], y[2]);

  check(khoroCommDestroy(of_row), NULL);
  check(khoroCommDestroy(of_column), NULL);
  check(khoroCommDestroy(world), NULL);
  return 0;
}
