/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that plays one part after a first allreduce that all make, and says what it is told.
   usage: actor loop | leave | circle
          actor wait RANK | silent RANK | differ RANK | abort RANK | exit RANK
   loop    all make small calls for ever
   leave   all destroy the communicator and stay
   circle  each receives from the next one before it sends
   wait    RANK makes no further call; the others wait for it in one
   silent  RANK makes no further call; the others receive from it
   differ  RANK makes another call than the others
   abort   RANK aborts the communicator while the others wait for it in a call
   exit    RANK exits with status 3 while the others receive from it */
#define _POSIX_C_SOURCE 200809L
#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void pause_for(long milliseconds) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static khoroResult_t reduce(khoroComm_t comm, size_t count) {
  static float in[4], out[4];
  return khoroAllReduce(in, out, count, khoroFloat32, khoroSum, comm, NULL);
}

static void stay(void) {
  for (;;) pause_for(1000);
}

int main(int argc, char** argv) {
  khoroComm_t comm;
  int rank;
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* part = argc > 1 ? argv[1] : "loop";
  const int chosen = argc > 2 ? atoi(argv[2]) : -1;
  khoroResult_t result = khoroCommInitWorld(&comm);
  if (result == khoroSuccess) result = khoroCommUserRank(comm, &rank);
  if (result == khoroSuccess) result = reduce(comm, 1);
  printf("ready %ld\n", (long)getpid());
  if (strcmp(part, "leave") == 0) {
    khoroCommDestroy(comm);
    printf("left\n");
    stay();
  }
  const int silent = strcmp(part, "silent") == 0;
  if ((silent || strcmp(part, "wait") == 0) && rank == chosen) stay();
  if (strcmp(part, "abort") == 0 && rank == chosen) {
    pause_for(200);
    khoroCommAbort(comm);
    stay();
  }
  float received;
  if (silent) result = khoroRecv(&received, 1, khoroFloat32, chosen, comm, NULL);
  if (strcmp(part, "circle") == 0) {
    int ranks;
    khoroCommCount(comm, &ranks);
    result = khoroRecv(&received, 1, khoroFloat32, (rank + 1) % ranks, comm, NULL);
  }
  if (strcmp(part, "exit") == 0) {
    if (rank == chosen) pause_for(200);
    if (rank == chosen) return 3;
    result = khoroRecv(&received, 1, khoroFloat32, chosen, comm, NULL);
  }
  while (result == khoroSuccess) {
    result = reduce(comm, strcmp(part, "differ") == 0 && rank == chosen ? 3 : 2);
    pause_for(1);
  }
  printf("told %d %s\n", result, khoroGetLastError(comm));
  return 3;
}
