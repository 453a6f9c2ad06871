/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, threads and mappings are back to base after every round of init and destroy. */
#include "usage.h"

#include <sys/resource.h>

static void use(khoroComm_t comm, int rank, int ranks) {
  int32_t in[4] = {rank, rank, rank, rank}, out[4], all[64];
  OK(khoroAllReduce(in, out, 4, khoroInt32, khoroSum, comm, NULL));
  CHECK(out[3] == ranks * (ranks - 1) / 2);
  OK(khoroAllGather(in, all, 4, khoroInt32, comm, NULL));
  OK(khoroGroupStart());
  OK(khoroSend(in, 4, khoroInt32, (rank + 1) % ranks, comm, NULL));
  OK(khoroRecv(out, 4, khoroInt32, (rank + ranks - 1) % ranks, comm, NULL));
  OK(khoroGroupEnd());
  OK(khoroBarrier(comm, NULL));
}

static void process_rounds(struct meeting_place* places, int rounds, int ranks, int rank) {
  struct usage base = {0};
  for (int round = 0; round < rounds; ++round) {
    khoroComm_t comm = join_at(&places[round], ranks, rank);
    use(comm, rank, ranks);
    OK(khoroCommDestroy(comm));
    if (round == 1) base = usage();
    if (round > 1) check_base(base, round);
  }
  exit(0);
}

int main(void) {
  enum { rounds = 300, ranks = 4 };
  const struct rlimit few = {128, 128};
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);

  struct meeting_place* places = mmap(NULL, rounds * sizeof *places, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(places != MAP_FAILED);
  pid_t children[ranks];
  for (int r = 0; r < ranks; ++r) {
    children[r] = fork();
    CHECK(children[r] >= 0);
    if (children[r] == 0) process_rounds(places, rounds, ranks, r);
  }
  for (int r = 0; r < ranks; ++r) check_exit(children[r]);

  struct usage base = {0};
  for (int round = 0; round < rounds; ++round) {
    run_threads(ranks, use);
    if (round == 1) base = usage();
    if (round > 1) check_base(base, round);
  }
  return 0;
}
