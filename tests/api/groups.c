/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: over several communicators of one thread, nested, with sends and receives both ways, with
 * inits, and with errors. */
#include "values.h"

enum { most = 5, long_count = 300000 };

/* One thread is all ranks. */
static void one_thread_drives_all_ranks(int ranks, size_t count) {
  khoroComm_t comms[most];
  const size_t bytes = count * 4;
  void *in[most], *out[most], *again[most];
  void* expected = guarded(bytes);
  OK(khoroCommInitAllHost(comms, ranks));
  for (size_t i = 0; i < count; ++i) store_reduced(expected, khoroFloat32, i, ranks, khoroSum, i);
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) {
    in[r] = guarded(bytes), out[r] = guarded(bytes), again[r] = guarded(bytes);
    fill(in[r], khoroFloat32, count, r, 0);
    OK(khoroGroupStart());
    OK(khoroAllReduce(in[r], out[r], count, khoroFloat32, khoroSum, comms[r], NULL));
    OK(khoroBroadcast(out[r], again[r], count, khoroFloat32, ranks - 1, comms[r], NULL));
    OK(khoroBarrier(comms[r], NULL));
    OK(khoroGroupEnd());
  }
  CHECK(((unsigned char*)out[0])[0] == 0x5a); /* nothing has begun */
  OK(khoroGroupEnd());
  for (int r = 0; r < ranks; ++r) {
    check_equal(out[r], expected, khoroFloat32, count, "allreduce in a group");
    check_equal(again[r], expected, khoroFloat32, count, "broadcast in a group");
    release(in[r], bytes), release(out[r], bytes), release(again[r], bytes);
    OK(khoroCommDestroy(comms[r]));
  }
  release(expected, bytes);
}

/* Everybody sends to everybody, itself too, several times: alltoall by hand. */
static void everybody_to_everybody(khoroComm_t comm, int rank, int ranks) {
  static const size_t counts[] = {1, 0, 5000, long_count};
  for (int round = 0; round < 4; ++round) {
    const size_t count = counts[round], bytes = count * 8;
    void *in[2 * most], *out[2 * most];
    OK(khoroGroupStart());
    for (int i = 0; i < 2 * ranks; ++i) {
      in[i] = guarded(bytes), out[i] = guarded(bytes);
      fill(in[i], khoroInt64, count, rank * 10 + i, 0);
      OK(khoroSend(in[i], count, khoroInt64, i % ranks, comm, NULL));
    }
    for (int i = 0; i < 2 * ranks; ++i)
      OK(khoroRecv(out[i], count, khoroInt64, i % ranks, comm, NULL));
    OK(khoroGroupEnd());
    for (int i = 0; i < 2 * ranks; ++i) {
      const int from = i % ranks;
      fill(in[i], khoroInt64, count, from * 10 + rank + i / ranks * ranks, 0);
      check_equal(out[i], in[i], khoroInt64, count, "a message of a group");
      release(in[i], bytes), release(out[i], bytes);
    }
  }
}

/* Some pairs are empty, some ranks send nothing at all, and collectives come between. */
static void uneven(khoroComm_t comm, int rank, int ranks) {
  for (int round = 0; round < 200; ++round) {
    int32_t in[most][16], out[most][16];
    OK(khoroGroupStart());
    for (int peer = 0; peer < ranks; ++peer) {
      const size_t sent = (size_t)((rank * 5 + peer * 3 + round) % 3) * 7;
      const size_t received = (size_t)((peer * 5 + rank * 3 + round) % 3) * 7;
      fill(in[peer], khoroInt32, 16, rank + round, 0);
      if (rank != 1) OK(khoroSend(in[peer], sent, khoroInt32, peer, comm, NULL));
      if (peer != 1) OK(khoroRecv(out[peer], received, khoroInt32, peer, comm, NULL));
    }
    OK(khoroGroupEnd());
    for (int peer = 0; peer < ranks; ++peer) {
      const size_t received = (size_t)((peer * 5 + rank * 3 + round) % 3) * 7;
      if (peer == 1) continue;
      fill(in[0], khoroInt32, 16, peer + round, 0);
      check_equal(out[peer], in[0], khoroInt32, received, "an uneven message");
    }
    if (round % 50 == 0) OK(khoroBarrier(comm, NULL));
  }
}

/* Plain sends and receives, also where only some ranks take part. */
static void ping_pong(khoroComm_t comm, int rank, int ranks) {
  int64_t value = 0, sum = 0;
  const int64_t one = 1;
  for (int round = 0; round < 100; ++round) {
    if (rank == 0) {
      for (int64_t k = 0; k < 3; ++k) OK(khoroSend(&k, 1, khoroInt64, 1, comm, NULL));
      OK(khoroRecv(&value, 1, khoroInt64, 1, comm, NULL));
      CHECK(value == 3);
    } else if (rank == 1) {
      int64_t total = 0;
      for (int k = 0; k < 3; ++k) {
        OK(khoroRecv(&value, 1, khoroInt64, 0, comm, NULL));
        CHECK(value == k);
        total += value;
      }
      OK(khoroSend(&total, 1, khoroInt64, 0, comm, NULL));
    }
    OK(khoroAllReduce(&one, &sum, 1, khoroInt64, khoroSum, comm, NULL));
    CHECK(sum == ranks);
  }
}

static void errors(khoroComm_t comm, int rank, int ranks) {
  float in[4] = {1, 2, 3, 4}, out[4];
  (void)ranks;
  OK(khoroGroupStart());
  CHECK_REFUSED(khoroInvalidArgument, "no reduction",
                khoroAllReduce(in, out, 4, khoroFloat32, (khoroRedOp_t)5, comm, NULL));
  OK(khoroGroupEnd());
  OK(khoroGroupStart());
  OK(khoroSend(in, 4, khoroFloat32, rank, comm, NULL));
  CHECK_REFUSED(khoroInvalidUsage, "itself", khoroGroupEnd());
  OK(khoroGroupStart());
  OK(khoroSend(in, 4, khoroFloat32, rank, comm, NULL));
  OK(khoroRecv(out, 3, khoroFloat32, rank, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "must name the same count", khoroGroupEnd());
  OK(khoroGroupStart());
  OK(khoroGroupEnd());
  OK(khoroBarrier(comm, NULL));
}

static void destroyed_inside(void) {
  khoroComm_t comm;
  float in = 1, out;
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroGroupStart());
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroCommDestroy(comm));
  CHECK_REFUSED(khoroInvalidArgument, "stale", khoroGroupEnd());
}

static void inits_in_a_group(int ranks) {
  khoroComm_t comms[most] = {0};
  khoroUniqueId id;
  OK(khoroGetUniqueId(&id));
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) OK(khoroCommInitRank(&comms[r], ranks, id, r));
  for (int r = 0; r < ranks; ++r) CHECK(!comms[r]); /* written at the end */
  OK(khoroGroupEnd());
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) OK(khoroBarrier(comms[r], NULL));
  OK(khoroGroupEnd());
  for (int r = 0; r < ranks; ++r) {
    int rank = -1;
    OK(khoroCommUserRank(comms[r], &rank));
    CHECK(rank == r);
    OK(khoroCommDestroy(comms[r]));
  }
}

static khoroComm_t busy[2];

static void* be_inside(void* unused) {
  OK(khoroBarrier(busy[0], NULL));
  return unused;
}

static void* wait_for_the_group(void* id) {
  khoroComm_t comm = NULL;
  const double start = seconds();
  CHECK_REFUSED(khoroRemoteError, "another thread",
                khoroCommInitRank(&comm, 2, *(khoroUniqueId*)id, 1));
  CHECK(seconds() - start < 20); /* the init deadline is 60 s */
  return NULL;
}

/* The ranks that wait for the others of the group learn of it. */
static void one_init_of_a_group_cannot_begin(void) {
  khoroComm_t split = NULL, comm = NULL;
  khoroUniqueId id;
  khoroStatistics_t statistics = KHORO_STATISTICS_INITIALIZER;
  pthread_t inside, waiting;
  OK(khoroCommInitAllHost(busy, 2));
  OK(khoroGetUniqueId(&id));
  CHECK(pthread_create(&inside, NULL, be_inside, NULL) == 0);
  while (statistics.collectives == 0) OK(khoroCommQuery(busy[0], &statistics));
  CHECK(pthread_create(&waiting, NULL, wait_for_the_group, &id) == 0);
  OK(khoroGroupStart());
  OK(khoroCommSplit(busy[0], 0, 0, &split, NULL));
  OK(khoroCommInitRank(&comm, 2, id, 0));
  CHECK_REFUSED(khoroInvalidUsage, "another thread", khoroGroupEnd());
  CHECK(!split && !comm);
  CHECK(pthread_join(waiting, NULL) == 0);
  OK(khoroBarrier(busy[1], NULL));
  CHECK(pthread_join(inside, NULL) == 0);
  for (int r = 0; r < 2; ++r) OK(khoroCommDestroy(busy[r]));
}

/* So that a program can join ranks until none is left. */
static void a_launcher_is_missed_at_the_call(void) {
  khoroComm_t comm = NULL;
  OK(khoroGroupStart());
  CHECK_RESULT(khoroInvalidUsage, khoroCommInitWorld(&comm));
  CHECK_WORDS("khoro run");
  OK(khoroGroupEnd());
  CHECK(comm == NULL);
}

int main(void) {
  for (int ranks = 1; ranks <= most; ++ranks) {
    one_thread_drives_all_ranks(ranks, 3);
    one_thread_drives_all_ranks(ranks, long_count);
    run_threads(ranks, everybody_to_everybody);
    run_threads(ranks, uneven);
    inits_in_a_group(ranks);
  }
  run_threads(4, ping_pong);
  run_threads(2, errors);
  destroyed_inside();
  one_init_of_a_group_cannot_begin();
  a_launcher_is_missed_at_the_call();
  return 0;
}
