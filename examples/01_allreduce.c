/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank adds its vector to everybody's. Run it: khoro run -n 3 -- 01_allreduce */
#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>

/* quote: begin */
static void check(khoroResult_t result, khoroComm_t comm) {
  if (result == khoroSuccess) return;
  fprintf(stderr, "%s: %s\n", khoroGetErrorString(result), khoroGetLastError(comm));
  exit(1);
}

int main(void) {
  khoroComm_t comm = NULL;
  check(khoroCommInitWorld(&comm), NULL); /* the ranks that `khoro run` started */
  int rank, ranks;
  check(khoroCommUserRank(comm, &rank), comm);
  check(khoroCommCount(comm, &ranks), comm);

  float mine[3] = {1.0f, (float)rank, 0.5f}, sum[3];
  check(khoroAllReduce(mine, sum, 3, khoroFloat32, khoroSum, comm, NULL), comm);
  printf("rank %d of %d: %g %g %g\n", rank, ranks, sum[0], sum[1], sum[2]);

  check(khoroCommDestroy(comm), NULL);
  return 0;
}
/* quote: end */
