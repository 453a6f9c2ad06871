/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of a launcher's job that makes calls of every kind, some of them with the trace off.
   usage: traced FILE [stuck]; FILE is what the trace goes to when it is on again, and with `stuck`
   rank 0 never makes the last call. */
#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static khoroComm_t comm;

static void check(khoroResult_t result, const char* what) {
  if (result == khoroSuccess) return;
  printf("%s %d: %s\n", what, result, khoroGetLastError(comm));
  exit(5);
}

static void allreduce(khoroComm_t in, size_t count) {
  float* data = calloc(count, sizeof *data);
  check(khoroAllReduce(data, data, count, khoroFloat32, khoroSum, in, NULL), "allreduce");
  free(data);
}

int main(int argc, char** argv) {
  int rank, ranks, value = 0, got = 0;
  if (argc < 2) return 2;
  check(khoroCommInitWorld(&comm), "init");
  check(khoroCommUserRank(comm, &rank), "rank");
  check(khoroCommCount(comm, &ranks), "count");
  allreduce(comm, 2);
  allreduce(comm, 300000);
  check(khoroBarrier(comm, NULL), "barrier");
  check(khoroGroupStart(), "group");
  check(khoroSend(&value, 1, khoroInt32, (rank + 1) % ranks, comm, NULL), "send");
  check(khoroRecv(&got, 1, khoroInt32, (rank + ranks - 1) % ranks, comm, NULL), "recv");
  check(khoroGroupEnd(), "group");

  check(khoroSetTraceFile(NULL), "off");
  check(khoroBroadcast(&value, &value, 1, khoroInt32, 0, comm, NULL), "broadcast");
  check(khoroSetTraceFile(argv[1]), "on");
  check(khoroAllGather(&value, calloc(ranks, sizeof value), 1, khoroInt32, comm, NULL), "gather");
  khoroComm_t half;
  check(khoroCommSplit(comm, rank % 2, rank, &half, NULL), "split");
  allreduce(half, 5);
  if (argc > 2) {
    if (rank == 0) sleep(600);
    allreduce(comm, 1);
  }
  check(khoroCommDestroy(half), "destroy");
  check(khoroCommDestroy(comm), "destroy");
  return 0;
}
