/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody else, in C: two ranks of one thread sum what they have. */
#include <khoro/khoro.h>
#include <stdio.h>

static int failed(khoroResult_t result) {
  if (result == khoroSuccess) return 0;
  fprintf(stderr, "%s: %s\n", khoroGetErrorString(result), khoroGetLastError(NULL));
  return 1;
}

int main(void) {
  khoroComm_t comms[2];
  int version = 0;
  float mine[2] = {1, 2}, sum[2] = {0, 0};
  if (failed(khoroGetVersion(&version)) || failed(khoroCommInitAllHost(comms, 2)) ||
      failed(khoroGroupStart()))
    return 1;
  for (int r = 0; r < 2; ++r)
    if (failed(khoroAllReduce(&mine[r], &sum[r], 1, khoroFloat32, khoroSum, comms[r], NULL)))
      return 1;
  if (failed(khoroGroupEnd())) return 1;
  for (int r = 0; r < 2; ++r)
    if (failed(khoroCommDestroy(comms[r]))) return 1;
  printf("khoro %d.%d.%d: %g %g\n", version / 10000, version / 100 % 100, version % 100, sum[0],
         sum[1]);
  return 0;
}
