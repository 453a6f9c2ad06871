/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that may be killed at any moment. It says where it is and what it is told of the end of
   another rank, with the machine's monotonic clock. usage: victim idle|loop */
#define _POSIX_C_SOURCE 200809L
#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int report(khoroComm_t comm, khoroResult_t result) {
  printf("told %.6f %d %s\n", now(), result, khoroGetLastError(comm));
  return 3;
}

int main(int argc, char** argv) {
  khoroComm_t comm;
  khoroResult_t result;
  int rank = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("process %ld\n", (long)getpid());
  if ((result = khoroCommInitWorld(&comm)) != khoroSuccess) return report(NULL, result);
  khoroCommUserRank(comm, &rank);
  printf("joined\n");
  if (argc > 1 && strcmp(argv[1], "idle") == 0) {
    khoroResult_t error = khoroSuccess;
    const struct timespec pause = {0, 1000000};
    while (error == khoroSuccess && khoroCommGetAsyncError(comm, &error) == khoroSuccess)
      nanosleep(&pause, NULL);
    return report(comm, error);
  }
  const size_t count = (size_t)8 << 20;
  float* buffer = calloc(count, sizeof *buffer);
  if (!buffer) return 1;
  result = khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroSum, comm, NULL);
  printf("looping\n");
  while (result == khoroSuccess)
    result = khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroSum, comm, NULL);
  free(buffer);
  return report(comm, result);
}
