/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of a launcher's job: joins, reduces its rank's number as often as it is told, and says
   what came of it. usage: world [ROUNDS] */
#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 1;
  khoroComm_t comm;
  khoroResult_t result = khoroCommInitWorld(&comm);
  if (result != khoroSuccess) {
    printf("init %d: %s\n", result, khoroGetLastError(NULL));
    return 5;
  }
  int rank;
  khoroCommUserRank(comm, &rank);
  int sum = 0;
  for (long round = 0; round < rounds; ++round) {
    result = khoroAllReduce(&rank, &sum, 1, khoroInt32, khoroSum, comm, NULL);
    if (result != khoroSuccess) {
      printf("allreduce %d: %s\n", result, khoroGetLastError(comm));
      return 6;
    }
  }
  printf("sum %d\n", sum);
  return khoroCommDestroy(comm) == khoroSuccess ? 0 : 7;
}
