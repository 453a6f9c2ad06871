/* SPDX-License-Identifier: Apache-2.0 */
/* A thread is asked while it waits in calls, whatever they wait in, and can be called away. */
#include "check.h"

static const int long_wait_ms = 900;

struct asked {
  int times, patience;
  khoroResult_t called;
  pthread_t thread;
};

static int ask(void* context) {
  struct asked* asked = context;
  asked->thread = pthread_self();
  asked->called = khoroGroupStart();
  return ++asked->times > asked->patience;
}

static void check_asked(const struct asked* asked) {
  CHECK(asked->times > 0);
  CHECK(pthread_equal(asked->thread, pthread_self()));
  CHECK(asked->called == khoroInvalidUsage);
}

/* Rank 0 waits for the others, is asked, and waits on. */
static void waits_on(khoroComm_t comm, int rank, int ranks) {
  struct asked asked = {.patience = 1000};
  float one = 1, sum = 0;
  if (rank == 0) OK(khoroSetWaitCallback(ask, &asked));
  OK(khoroAllReduce(&one, &sum, 1, khoroFloat32, khoroSum, comm, NULL));
  CHECK(asked.times == 0);
  if (rank > 0) sleep_ms(long_wait_ms);
  OK(khoroAllReduce(&one, &sum, 1, khoroFloat32, khoroSum, comm, NULL));
  CHECK(sum == (float)ranks);
  if (rank == 0) check_asked(&asked);
  if (rank > 0) sleep_ms(long_wait_ms);
  OK(khoroSetWaitCallback(NULL, NULL));
  asked.times = 0;
  OK(khoroBarrier(comm, NULL));
  CHECK(asked.times == 0);
}

static void barrier(khoroComm_t comm, khoroResult_t expected) {
  CHECK_RESULT(expected, khoroBarrier(comm, NULL));
}

static void barrier_in_group(khoroComm_t comm, khoroResult_t expected) {
  OK(khoroGroupStart());
  OK(khoroBarrier(comm, NULL));
  CHECK_RESULT(expected, khoroGroupEnd());
}

static khoroStream_t queue(khoroComm_t comm, int32_t* value) {
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  OK(khoroAllReduce(value, value, 1, khoroInt32, khoroSum, comm, stream));
  return stream;
}

static void barrier_behind_a_stream(khoroComm_t comm, khoroResult_t expected) {
  int32_t value = 1;
  const khoroStream_t stream = queue(comm, &value);
  CHECK_RESULT(expected, khoroBarrier(comm, NULL));
  OK(khoroStreamDestroy(stream));
}

static void group_behind_a_stream(khoroComm_t comm, khoroResult_t expected) {
  int32_t value = 1;
  const khoroStream_t stream = queue(comm, &value);
  barrier_in_group(comm, expected);
  OK(khoroStreamDestroy(stream));
}

static void finalize_behind_a_stream(khoroComm_t comm, khoroResult_t expected) {
  int32_t value = 1;
  const khoroStream_t stream = queue(comm, &value);
  CHECK_RESULT(expected, khoroCommFinalize(comm));
  OK(khoroStreamDestroy(stream));
}

static void (*const waits[])(khoroComm_t, khoroResult_t) = {
    barrier, barrier_in_group, barrier_behind_a_stream, group_behind_a_stream,
    finalize_behind_a_stream};

/* Rank 0 is called away from a wait that nobody else would end; the others hear of it. */
static void is_called_away(khoroComm_t comm, int rank, int ranks) {
  static int next;
  struct asked asked = {.patience = 1};
  (void)ranks;
  if (rank > 0) {
    CHECK(wait_while(khoroSuccess, comm) == khoroAborted);
    CHECK_RESULT(khoroAborted, khoroBarrier(comm, NULL));
    return;
  }
  OK(khoroSetWaitCallback(ask, &asked));
  const double begin = seconds();
  waits[next++](comm, khoroAborted);
  CHECK(seconds() - begin < soon);
  check_asked(&asked);
  CHECK(asked.times == 2);
  OK(khoroSetWaitCallback(NULL, NULL));
}

int main(void) {
  run_processes(2, waits_on);
  run_processes(2, is_called_away);
  run_threads(3, waits_on);
  for (size_t i = 0; i < sizeof waits / sizeof *waits; ++i) run_threads(2, is_called_away);
  return 0;
}
