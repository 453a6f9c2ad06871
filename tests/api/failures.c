/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a wait: abort, the deadline, a peer that died or left, calls that do not match. Every
 * survivor learns who, what and which call, and soon. */
#include "check.h"

static struct meeting_place* place;

/* The words of a failed call name the culprit and the operation. */
static void check_cause(const char* culprit, const char* operation) {
  CHECK_WORDS(culprit);
  CHECK_WORDS(operation);
}

/* Who makes no call learns of it, too. */
static khoroResult_t wait_for_async_error(khoroComm_t comm) {
  const double start = seconds();
  const khoroResult_t error = wait_while(khoroSuccess, comm);
  CHECK(seconds() - start < soon);
  return error;
}

/* Rank 1 dies in a loop of long allreduces. */
static void killed_in_a_loop(khoroComm_t comm, int rank, int ranks) {
  const size_t count = 1 << 20;
  float* buffer = calloc(count, 4);
  (void)ranks;
  khoroResult_t result = khoroSuccess;
  double start = 0;
  for (int i = 0; result == khoroSuccess && i < 100000; ++i) {
    start = seconds();
    result = khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroMax, comm, NULL);
    set_flag(place, rank);
  }
  CHECK(seconds() - start < soon);
  CHECK(result == khoroPeerDied);
  check_cause("rank 1", "allreduce");
  /* The first cause stays. */
  CHECK_RESULT(khoroPeerDied, khoroBarrier(comm, NULL));
  check_cause("rank 1", "allreduce");
  free(buffer);
}

/* Rank 1 dies while nobody is in a call. */
static void killed_at_idle(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  OK(khoroBarrier(comm, NULL));
  set_flag(place, rank);
  if (rank == 1) sleep_ms(100000);
  CHECK(wait_for_async_error(comm) == khoroPeerDied);
  check_words(__FILE__, __LINE__, khoroGetLastError(comm), "rank 1");
  CHECK_RESULT(khoroPeerDied, khoroBarrier(comm, NULL));
}

static void kill_rank_1(int ranks, rank_body body, int after_ms) {
  place = make_meeting_place();
  run_and_kill_rank_1(place, ranks, body, after_ms);
}

/* Rank 2 makes one call less. */
static void one_never_comes(khoroComm_t comm, int rank, int ranks) {
  int32_t one = 1, sum = 0;
  OK(khoroAllReduce(&one, &sum, 1, khoroInt32, khoroSum, comm, NULL));
  CHECK(sum == ranks);
  OK(khoroCommSetDeadline(comm, 300));
  if (rank == 2) {
    CHECK(wait_for_async_error(comm) == khoroTimeout);
    return;
  }
  const double start = seconds();
  CHECK_RESULT(khoroTimeout, khoroAllReduce(&one, &sum, 1, khoroInt32, khoroSum, comm, NULL));
  CHECK(seconds() - start > 0.2 && seconds() - start < soon);
  check_cause("rank 2", "allreduce");
  CHECK_WORDS("#2");
}

static void nobody_sends(khoroComm_t comm, int rank, int ranks) {
  int32_t value = 0;
  (void)ranks;
  OK(khoroCommSetDeadline(comm, 300));
  if (rank == 0) {
    CHECK_RESULT(khoroTimeout, khoroRecv(&value, 1, khoroInt32, 1, comm, NULL));
    check_cause("rank 1", "recv");
  } else {
    CHECK(wait_for_async_error(comm) == khoroTimeout);
  }
}

static void one_aborts(khoroComm_t comm, int rank, int ranks) {
  int32_t one = 1, sum = 0;
  (void)ranks;
  if (rank == 1) {
    sleep_ms(100);
    OK(khoroCommAbort(comm));
    CHECK_RESULT(khoroAborted, khoroBarrier(comm, NULL));
    return;
  }
  const double start = seconds();
  CHECK_RESULT(khoroAborted, khoroAllReduce(&one, &sum, 1, khoroInt32, khoroSum, comm, NULL));
  CHECK(seconds() - start < soon);
  check_cause("rank 1 ", "aborted");
  CHECK(async_error(comm) == khoroAborted);
}

static void* abort_later(void* comm) {
  sleep_ms(100);
  OK(khoroCommAbort(comm));
  return NULL;
}

static void abort_from_another_thread(void) {
  khoroComm_t comms[2];
  pthread_t thread;
  int32_t one = 1, sum = 0;
  OK(khoroCommInitAllHost(comms, 2));
  CHECK(pthread_create(&thread, NULL, abort_later, comms[0]) == 0);
  const double start = seconds();
  CHECK_RESULT(khoroAborted, khoroAllReduce(&one, &sum, 1, khoroInt32, khoroSum, comms[0], NULL));
  CHECK(seconds() - start < soon);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK_RESULT(khoroAborted, khoroBarrier(comms[0], NULL));
  CHECK(wait_for_async_error(comms[1]) == khoroAborted);
  CHECK_RESULT(khoroAborted, khoroBarrier(comms[1], NULL));
  OK(khoroCommAbort(comms[1]));
  OK(khoroCommDestroy(comms[0]));
  OK(khoroCommDestroy(comms[1]));
}

/* The others need rank 0, which has left. */
static void one_leaves(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  OK(khoroBarrier(comm, NULL));
  if (rank == 0) return; /* and destroys */
  const double start = seconds();
  CHECK_RESULT(khoroRemoteError, khoroBarrier(comm, NULL));
  CHECK(seconds() - start < soon);
  check_cause("rank 0", "barrier");
}

/* Nobody needs anybody after the last call: leaving in any order is no failure. */
static void all_leave(khoroComm_t comm, int rank, int ranks) {
  int32_t one = 1, sum = 0;
  for (int i = 0; i < 10; ++i) OK(khoroAllReduce(&one, &sum, 1, khoroInt32, khoroSum, comm, NULL));
  CHECK(sum == ranks);
  sleep_ms(20 * ((rank + 1) % ranks));
  CHECK(async_error(comm) == khoroSuccess);
}

static void counts_differ(khoroComm_t comm, int rank, int ranks) {
  static float buffer[8][4096];
  (void)ranks;
  const double start = seconds();
  CHECK_RESULT(khoroMismatch, khoroAllReduce(buffer[rank], buffer[rank], rank == 2 ? 4000 : 4096,
                                             khoroFloat32, khoroSum, comm, NULL));
  CHECK(seconds() - start < soon);
  check_cause("rank 2", "4000");
  CHECK_WORDS("4096");
}

static void collectives_differ(khoroComm_t comm, int rank, int ranks) {
  static float in[8][64], out[8][1024];
  (void)ranks;
  khoroResult_t result =
      rank == 1 ? khoroAllGather(in[rank], out[rank], 64, khoroFloat32, comm, NULL)
                : khoroAllReduce(in[rank], out[rank], 64, khoroFloat32, khoroSum, comm, NULL);
  CHECK(result == khoroMismatch);
  check_cause("rank 1", "khoroAllGather(64 x khoroFloat32)");
  CHECK_WORDS("khoroAllReduce(64 x khoroFloat32, khoroSum)");
}

static void sizes_of_a_message_differ(khoroComm_t comm, int rank, int ranks) {
  int32_t buffer[8] = {0};
  (void)ranks;
  if (rank == 0) {
    /* A send may be done before its receiver looks, and learns of it later. */
    const khoroResult_t sent = khoroSend(buffer, 4, khoroInt32, 1, comm, NULL);
    CHECK(sent == khoroSuccess || sent == khoroMismatch);
    CHECK(wait_for_async_error(comm) == khoroMismatch);
  } else {
    CHECK_RESULT(khoroMismatch, khoroRecv(buffer, 5, khoroInt32, 0, comm, NULL));
    check_cause("rank 0 called khoroSend(4", "rank 1 called khoroRecv(5");
  }
}

/* A message of nothing is a message: its receiver has heard from its sender. */
static void nothing_is_sent(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  if (rank == 1) {
    sleep_ms(50);
    set_flag(place, 1);
    OK(khoroSend(NULL, 0, khoroInt32, 0, comm, NULL));
  } else {
    OK(khoroRecv(NULL, 0, khoroInt32, 1, comm, NULL));
    CHECK(__atomic_load_n(&place->flags[1], __ATOMIC_ACQUIRE));
  }
}

/* Who has found it and ends at once is not taken for a rank that died of itself. */
static void differ_and_exit(khoroComm_t comm, int rank, int ranks) {
  int32_t in[2] = {0}, out[2];
  (void)ranks;
  CHECK_RESULT(khoroMismatch,
               khoroAllReduce(in, out, rank == 1 ? 2 : 1, khoroInt32, khoroSum, comm, NULL));
  _exit(0);
}

int main(void) {
  /* Processes first: the parent has not used Khoro yet. */
  for (int round = 0; round < 3; ++round) {
    kill_rank_1(2 + round, killed_in_a_loop, 10 * round);
    kill_rank_1(2 + round, killed_at_idle, round);
  }
  for (int round = 0; round < 30; ++round) run_processes(3, differ_and_exit);
  run_processes(3, one_never_comes);
  run_processes(2, nobody_sends);
  run_processes(3, one_aborts);
  run_processes(2, one_leaves);
  run_processes(3, one_leaves);
  run_processes(3, all_leave);
  run_processes(4, counts_differ);
  run_processes(3, collectives_differ);
  run_processes(2, sizes_of_a_message_differ);
  place = make_meeting_place();
  run_processes(2, nothing_is_sent);

  run_threads(3, one_never_comes);
  run_threads(2, nobody_sends);
  run_threads(3, one_aborts);
  run_threads(4, counts_differ);
  run_threads(3, collectives_differ);
  run_threads(2, sizes_of_a_message_differ);
  place = make_meeting_place();
  run_threads(2, nothing_is_sent);
  abort_from_another_thread();
  return 0;
}
