/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a communicator: being made, failed, ready, poisoned, finalized, destroyed. What
 * every function does in each of them, and how one gets from one to the next. */
#include "usage.h"

static khoroComm_t begin(khoroUniqueId id, int ranks, int rank) {
  khoroComm_t comm = NULL;
  const khoroConfig_t config = nonblocking();
  const double start = seconds();
  CHECK_RESULT(khoroInProgress, khoroCommInitRankConfig(&comm, ranks, id, rank, &config));
  CHECK(comm && seconds() - start < soon);
  return comm;
}

/* The table of states and functions. */

enum state { in_progress, failed, ready, poisoned, finalized, destroyed, states };
static const char* const state_names[] = {"in progress", "failed",    "ready",
                                          "poisoned",    "finalized", "destroyed"};
/* Why a call is refused in that state. */
static const char* const reasons[] = {
    "still being made", "aborted", "", "aborted", "finalized", "the communicator handle is stale"};

/* A communicator of one rank in that state; one in progress waits for a second rank. */
static khoroComm_t comm_in(enum state state) {
  khoroUniqueId id;
  khoroComm_t comm;
  OK(khoroGetUniqueId(&id));
  if (state == in_progress || state == failed) {
    comm = begin(id, 2, 0);
    if (state == in_progress) return comm;
    OK(khoroCommAbort(comm));
    CHECK(wait_while(khoroInProgress, comm) == khoroAborted);
    return comm;
  }
  OK(khoroCommInitRank(&comm, 1, id, 0));
  if (state == poisoned) OK(khoroCommAbort(comm));
  if (state == finalized) OK(khoroCommFinalize(comm));
  if (state == destroyed) OK(khoroCommDestroy(comm));
  return comm;
}

static float in[4], out[4];
static khoroResult_t all_reduce(khoroComm_t comm) {
  return khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, comm, NULL);
}
static khoroResult_t empty_all_reduce(khoroComm_t comm) {
  return khoroAllReduce(NULL, NULL, 0, khoroFloat32, khoroSum, comm, NULL);
}
static khoroResult_t broadcast(khoroComm_t comm) {
  return khoroBroadcast(in, out, 4, khoroFloat32, 0, comm, NULL);
}
static khoroResult_t all_gather(khoroComm_t comm) {
  return khoroAllGather(in, out, 4, khoroFloat32, comm, NULL);
}
static khoroResult_t reduce_scatter(khoroComm_t comm) {
  return khoroReduceScatter(in, out, 4, khoroFloat32, khoroSum, comm, NULL);
}
static khoroResult_t barrier(khoroComm_t comm) { return khoroBarrier(comm, NULL); }
static khoroResult_t grouped(khoroComm_t comm) {
  OK(khoroGroupStart());
  const khoroResult_t sent = khoroSend(in, 4, khoroFloat32, 0, comm, NULL);
  const khoroResult_t received = khoroRecv(out, 4, khoroFloat32, 0, comm, NULL);
  const khoroResult_t ended = khoroGroupEnd();
  CHECK(sent == received);
  return sent != khoroSuccess ? sent : ended;
}
static khoroResult_t count(khoroComm_t comm) {
  int number = 0;
  return khoroCommCount(comm, &number);
}
static khoroResult_t user_rank(khoroComm_t comm) {
  int number = 0;
  return khoroCommUserRank(comm, &number);
}
static khoroResult_t get_async_error(khoroComm_t comm) {
  khoroResult_t error = khoroInternalError;
  return khoroCommGetAsyncError(comm, &error);
}
static khoroResult_t set_deadline(khoroComm_t comm) { return khoroCommSetDeadline(comm, 1000); }
static khoroResult_t revoke_it(khoroComm_t comm) {
  return khoroCommRevoke(comm, KHORO_REVOKE_DEFAULT);
}
static khoroResult_t query(khoroComm_t comm) {
  khoroStatistics_t statistics = KHORO_STATISTICS_INITIALIZER;
  return khoroCommQuery(comm, &statistics);
}
static khoroResult_t split(khoroComm_t comm) {
  khoroComm_t child = NULL;
  const khoroResult_t result = khoroCommSplit(comm, 3, 0, &child, NULL);
  CHECK((result == khoroSuccess) == (child != NULL));
  if (child) OK(khoroCommDestroy(child));
  return result;
}

#define CALL                                                                        \
  {                                                                                 \
    khoroInvalidUsage, khoroAborted, khoroSuccess, khoroAborted, khoroInvalidUsage, \
        khoroInvalidArgument                                                        \
  }
#define QUERY                                                                  \
  {                                                                            \
    khoroInvalidUsage, khoroAborted, khoroSuccess, khoroSuccess, khoroSuccess, \
        khoroInvalidArgument                                                   \
  }
#define ALWAYS \
  { khoroSuccess, khoroSuccess, khoroSuccess, khoroSuccess, khoroSuccess, khoroInvalidArgument }
static const struct {
  const char* name;
  khoroResult_t (*call)(khoroComm_t comm);
  khoroResult_t expected[states];
} functions[] = {
    {"allreduce", all_reduce, CALL},
    {"allreduce of nothing", empty_all_reduce, CALL},
    {"broadcast", broadcast, CALL},
    {"allgather", all_gather, CALL},
    {"reducescatter", reduce_scatter, CALL},
    {"barrier", barrier, CALL},
    {"group of send and recv", grouped, CALL},
    {"set deadline", set_deadline, CALL},
    {"split", split, CALL},
    {"finalize", khoroCommFinalize, CALL},
    {"count", count, QUERY},
    {"user rank", user_rank, QUERY},
    {"query", query, QUERY},
    {"revoke", revoke_it, QUERY},
    {"get async error", get_async_error, ALWAYS},
    {"abort", khoroCommAbort, ALWAYS},
    {"destroy", khoroCommDestroy, ALWAYS},
};

static void every_function_in_every_state(void) {
  for (int state = 0; state < states; ++state)
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
      const khoroComm_t comm = comm_in((enum state)state);
      const double start = seconds();
      forget_words();
      const khoroResult_t result = functions[i].call(comm);
      if (result != functions[i].expected[state] || seconds() - start > soon) {
        fprintf(stderr, "%s of a communicator that is %s: \"%s\" after %.1f s, not \"%s\": %s\n",
                functions[i].name, state_names[state], khoroGetErrorString(result),
                seconds() - start, khoroGetErrorString(functions[i].expected[state]),
                khoroGetLastError(NULL));
        abort();
      }
      if (result != khoroSuccess) CHECK_WORDS(reasons[state]);
      if (state != destroyed && functions[i].call != khoroCommDestroy) OK(khoroCommDestroy(comm));
    }
}

static void states_say_what_they_are(void) {
  khoroComm_t comm = comm_in(in_progress);
  CHECK(async_error(comm) == khoroInProgress);
  OK(khoroCommDestroy(comm));
  comm = comm_in(failed);
  CHECK(async_error(comm) == khoroAborted);
  check_words(__FILE__, __LINE__, khoroGetLastError(comm), "aborted while the ranks were meeting");
  OK(khoroCommDestroy(comm));
  comm = comm_in(finalized);
  CHECK(async_error(comm) == khoroSuccess);
  OK(khoroCommAbort(comm));
  CHECK(async_error(comm) == khoroAborted);
  OK(khoroCommDestroy(comm));
}

/* Ways to be made. */

static void sum_is_right(khoroComm_t comm, int rank, int ranks) {
  int64_t one = 1 << rank, all = 0;
  CHECK(wait_while(khoroInProgress, comm) == khoroSuccess);
  OK(khoroAllReduce(&one, &all, 1, khoroInt64, khoroSum, comm, NULL));
  CHECK(all == (1 << ranks) - 1);
}

/* One thread begins all of its ranks, one after the other, and none waits for the next. */
static void begun_by_one_thread(void) {
  khoroUniqueId id;
  khoroComm_t comms[4];
  int64_t ones[4], sums[4];
  OK(khoroGetUniqueId(&id));
  for (int r = 0; r < 4; ++r) comms[r] = begin(id, 4, r);
  for (int r = 0; r < 4; ++r) CHECK(wait_while(khoroInProgress, comms[r]) == khoroSuccess);
  OK(khoroGroupStart());
  for (int r = 0; r < 4; ++r) {
    ones[r] = 1;
    OK(khoroAllReduce(&ones[r], &sums[r], 1, khoroInt64, khoroSum, comms[r], NULL));
  }
  OK(khoroGroupEnd());
  for (int r = 0; r < 4; ++r) {
    CHECK(sums[r] == 4);
    OK(khoroCommDestroy(comms[r]));
  }
}

static void begun_in_a_group(void) {
  khoroUniqueId id;
  khoroComm_t comms[3] = {NULL, NULL, NULL};
  const khoroConfig_t config = nonblocking();
  OK(khoroGetUniqueId(&id));
  OK(khoroGroupStart());
  for (int r = 0; r < 2; ++r) OK(khoroCommInitRankConfig(&comms[r], 3, id, r, &config));
  CHECK(!comms[0] && !comms[1]);
  CHECK_RESULT(khoroInProgress, khoroGroupEnd());
  CHECK(comms[0] && comms[1]);
  CHECK(async_error(comms[0]) == khoroInProgress);
  OK(khoroCommInitRank(&comms[2], 3, id, 2));
  for (int r = 0; r < 3; ++r) {
    CHECK(wait_while(khoroInProgress, comms[r]) == khoroSuccess);
    OK(khoroCommDestroy(comms[r]));
  }
}

static struct meeting_place* place;

static void one_rank(khoroComm_t comm, int rank, int ranks) {
  comm = begin(id_at(place, rank == 0), ranks, rank);
  sum_is_right(comm, rank, ranks);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommFinalize(comm));
  OK(khoroCommDestroy(comm));
}

static void made_by(int processes, int threads) {
  place = make_meeting_place();
  run_joiners(processes, threads, one_rank);
  munmap(place, sizeof *place);
}

/* Ways to fail. */

static khoroComm_t doomed;
static int destroys;

static void* end_it_later(void* unused) {
  (void)unused;
  sleep_ms(200);
  const double start = seconds();
  OK(destroys ? khoroCommDestroy(doomed) : khoroCommAbort(doomed));
  CHECK(seconds() - start < soon);
  return NULL;
}

/* Rank 1 ends its init, which waits for rank 2; rank 0, which blocks, learns who did it. */
static void ended_while_in_progress(int by_destroying) {
  khoroUniqueId id;
  khoroComm_t comm = NULL;
  pthread_t thread;
  destroys = by_destroying;
  OK(khoroGetUniqueId(&id));
  doomed = begin(id, 3, 1);
  CHECK(pthread_create(&thread, NULL, end_it_later, NULL) == 0);
  const double start = seconds();
  CHECK_RESULT(khoroAborted, khoroCommInitRank(&comm, 3, id, 0));
  CHECK_WORDS("rank 1: it was aborted");
  CHECK(seconds() - start < soon && !comm);
  CHECK(pthread_join(thread, NULL) == 0);
  if (by_destroying) {
    khoroResult_t error = khoroInternalError;
    CHECK_REFUSED(khoroInvalidArgument, "stale", khoroCommGetAsyncError(doomed, &error));
  } else {
    CHECK(wait_while(khoroInProgress, doomed) == khoroAborted);
    OK(khoroCommDestroy(doomed));
  }
}

static void late_rank_is_named(void) {
  khoroUniqueId id;
  khoroComm_t comm = NULL;
  khoroConfig_t config = nonblocking();
  config.settings = "KHORO_INIT_DEADLINE=300ms";
  OK(khoroGetUniqueId(&id));
  CHECK_RESULT(khoroInProgress, khoroCommInitRankConfig(&comm, 3, id, 0, &config));
  CHECK(wait_while(khoroInProgress, comm) == khoroTimeout);
  check_words(__FILE__, __LINE__, khoroGetLastError(comm), "ranks 1-2 of 3 did not come");
  CHECK_RESULT(khoroTimeout, barrier(comm));
  CHECK_WORDS("ranks 1-2 of 3 did not come");
  OK(khoroCommDestroy(comm));
}

/* Whoever still needs a rank that was finalized is told that it has left. */
static void peers_of_one_that_was_finalized(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  OK(khoroBarrier(comm, NULL));
  if (rank == 1) {
    OK(khoroCommFinalize(comm));
    return;
  }
  CHECK_RESULT(khoroRemoteError, khoroBarrier(comm, NULL));
  CHECK_WORDS("rank 1");
  CHECK_WORDS("has left");
}

/* `base` was there before this process used Khoro. */
static void nothing_is_left(struct usage base) {
  for (int i = 0; i < 10; ++i) {
    OK(khoroCommDestroy(comm_in(in_progress)));
    OK(khoroCommDestroy(comm_in(failed)));
    OK(khoroCommDestroy(comm_in(finalized)));
  }
  /* Meetings that failed are served until those who come late have been told; what they held is
   * given back when another one ends. */
  const double end = seconds() + 60;
  struct usage now;
  do {
    sleep_ms(100);
    OK(khoroCommDestroy(comm_in(ready)));
    now = usage();
  } while ((now.threads != base.threads || now.descriptors != base.descriptors) && seconds() < end);
  CHECK(now.threads == base.threads && now.descriptors == base.descriptors);
}

static void* do_nothing(void* unused) { return unused; }

/* A sanitizer may start a thread of its own with the first one of the program. */
static void start_a_thread(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, do_nothing, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
  made_by(3, 1); /* processes first: this one has not used Khoro yet */
  made_by(1, 3);
  made_by(2, 2);
  start_a_thread();
  const struct usage base = usage();
  begun_by_one_thread();
  begun_in_a_group();
  every_function_in_every_state();
  states_say_what_they_are();
  ended_while_in_progress(0);
  ended_while_in_progress(1);
  late_rank_is_named();
  run_threads(2, peers_of_one_that_was_finalized);
  nothing_is_left(base);
  return 0;
}
