/* SPDX-License-Identifier: Apache-2.0 */
/* What ends calls on streams: errors, deadlines, abort, death, destroyed and forked owners. */
#include "refusals.h"
#include "stream_cases.h"
#include "usage.h"

/* Errors. */

static void an_error_in_the_middle(void) {
  struct pair fails = make_pair(), goes_on = make_pair();
  const khoroStream_t stream = make_stream();
  OK(khoroCommSetDeadline(fails.comms[0], 200));
  OK(add(&goes_on, 0, stream));
  OK(add(&fails, 0, stream)); /* rank 1 never comes */
  OK(khoroBarrier(fails.comms[0], stream));
  OK(add(&goes_on, 0, stream));
  OK(add(&goes_on, 1, NULL));
  OK(add(&goes_on, 1, NULL));
  CHECK(goes_on.out[1] == 3);
  const double start = seconds();
  CHECK_RESULT(khoroTimeout, khoroStreamSynchronize(stream));
  CHECK_WORDS("rank 1");
  CHECK(seconds() - start < soon);
  CHECK(goes_on.out[0] == 3);
  CHECK_RESULT(khoroTimeout, khoroStreamQuery(stream)); /* the stream keeps it */
  CHECK(async_error(fails.comms[0]) == khoroTimeout);
  CHECK_RESULT(khoroTimeout, add(&fails, 0, stream));
  CHECK_RESULT(khoroTimeout, add(&fails, 0, NULL));
  CHECK_RESULT(khoroTimeout, add(&fails, 1, NULL));
  OK(add(&goes_on, 0, stream));
  OK(add(&goes_on, 1, NULL));
  OK(khoroStreamDestroy(stream));
  CHECK(goes_on.out[0] == 3 && goes_on.out[1] == 3);
  destroy_pair(&fails);
  destroy_pair(&goes_on);
}

static void bad_arguments_fail_the_call(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  int32_t value = 0;
  CHECK_REFUSED(khoroInvalidArgument, "the send buffer is NULL",
                khoroAllReduce(NULL, &value, 1, khoroInt32, khoroSum, pair.comms[0], stream));
  CHECK_REFUSED(khoroInvalidArgument, "there is no rank 7",
                khoroBroadcast(&value, &value, 1, khoroInt32, 7, pair.comms[0], stream));
  CHECK_REFUSED(khoroInvalidUsage, "by that rank itself",
                khoroSend(&value, 1, khoroInt32, 0, pair.comms[0], stream));
  OK(khoroStreamQuery(stream)); /* nothing was queued */
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static void calls_that_do_not_match(khoroComm_t comm, int rank, int ranks) {
  static float buffer[8][100];
  const khoroStream_t stream = make_stream();
  (void)ranks;
  OK(khoroAllReduce(buffer[rank], buffer[rank], rank == 1 ? 99 : 100, khoroFloat32, khoroSum, comm,
                    stream));
  CHECK_RESULT(khoroMismatch, khoroStreamSynchronize(stream));
  CHECK_WORDS("rank 1");
  OK(khoroStreamDestroy(stream));
}

/* Failing gives buffers back only when nobody reads them any more. */
static void many_ranks_fail_at_once(khoroComm_t comm, int rank, int ranks) {
  enum { count = 1 << 18 };
  const khoroStream_t stream = make_stream();
  float* buffer = malloc(count * 4);
  memset(buffer, 0, count * 4);
  (void)ranks;
  khoroResult_t queued = khoroSuccess; /* or aborted already */
  for (int i = 0; i < 20 && queued == khoroSuccess; ++i)
    queued = khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroSum, comm, stream);
  CHECK(queued == khoroAborted || queued == khoroSuccess);
  if (rank == 0) OK(khoroCommAbort(comm));
  const khoroResult_t result = khoroStreamSynchronize(stream);
  CHECK(result == khoroAborted || result == khoroSuccess);
  free(buffer);
  OK(khoroStreamDestroy(stream));
}

/* Who waits, and what frees it. */

static struct pair waited_for, behind;
static khoroStream_t shared;

static void* abort_behind(void* unused) {
  (void)unused;
  sleep_ms(100);
  CHECK_REFUSED(khoroInvalidUsage, "another thread", add(&behind, 0, shared));
  OK(khoroCommAbort(behind.comms[0]));
  return NULL;
}

static void* abort_waited_for(void* unused) {
  (void)unused;
  sleep_ms(100);
  OK(khoroCommAbort(waited_for.comms[1]));
  return NULL;
}

static void abort_frees_who_waits(void) {
  pthread_t thread;
  waited_for = make_pair(), behind = make_pair();
  shared = make_stream();
  OK(add(&waited_for, 0, shared));
  OK(add(&behind, 0, shared));
  CHECK(pthread_create(&thread, NULL, abort_behind, NULL) == 0);
  double start = seconds();
  CHECK_RESULT(khoroAborted, khoroBarrier(behind.comms[0], NULL));
  CHECK(seconds() - start < soon);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(khoroStreamQuery(shared) == khoroInProgress);
  destroy_pair(&behind);
  CHECK(pthread_create(&thread, NULL, abort_waited_for, NULL) == 0);
  start = seconds();
  CHECK_RESULT(khoroAborted, khoroStreamSynchronize(shared));
  CHECK(seconds() - start < soon);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(khoroStreamDestroy(shared));
  destroy_pair(&waited_for);
}

static void a_blocking_call_behind_a_stream_keeps_its_deadline(void) {
  struct pair stuck = make_pair(), waits = make_pair();
  const khoroStream_t stream = make_stream();
  OK(add(&stuck, 0, stream));
  OK(khoroCommSetDeadline(waits.comms[0], 200));
  OK(add(&waits, 0, stream));
  double start = seconds();
  CHECK_RESULT(khoroTimeout, khoroBarrier(waits.comms[0], NULL));
  CHECK_WORDS("queued calls");
  CHECK(seconds() - start > 0.15 && seconds() - start < soon);
  /* Behind a call that has begun, whose own deadline is later. */
  struct pair begun = make_pair();
  const khoroStream_t other = make_stream();
  OK(add(&begun, 0, other));
  sleep_ms(20);
  OK(khoroCommSetDeadline(begun.comms[0], 200));
  start = seconds();
  CHECK_RESULT(khoroTimeout, khoroBarrier(begun.comms[0], NULL));
  CHECK_WORDS("rank 1");
  CHECK(seconds() - start < soon);
  OK(khoroCommAbort(stuck.comms[0]));
  OK(khoroStreamDestroy(stream));
  OK(khoroStreamDestroy(other));
  destroy_pair(&stuck);
  destroy_pair(&waits);
  destroy_pair(&begun);
}

static void destroying_a_communicator_waits_for_its_calls(void) {
  struct pair pair = make_pair(), late = make_pair();
  const khoroStream_t streams[2] = {make_stream(), make_stream()};
  uint64_t values[2] = {1, 1};
  for (int i = 0; i < 200; ++i)
    for (int r = 0; r < 2; ++r) sum_in_place(&values[r], pair.comms[r], streams[r]);
  destroy_pair(&pair);
  CHECK(values[0] == power(2, 200) && values[1] == power(2, 200));
  /* At most for its deadline. */
  OK(khoroCommSetDeadline(late.comms[0], 200));
  OK(add(&late, 0, streams[0]));
  const double start = seconds();
  OK(khoroCommDestroy(late.comms[0]));
  CHECK(seconds() - start < soon);
  CHECK_RESULT(khoroTimeout, khoroStreamSynchronize(streams[0]));
  OK(khoroCommDestroy(late.comms[1]));
  OK(khoroStreamDestroy(streams[0]));
  OK(khoroStreamDestroy(streams[1]));
}

static void check_refused(khoroStream_t stream) {
  struct pair pair = make_pair();
  const struct refusal refusal = {khoroInvalidArgument,
                                  stream ? "the stream handle is stale" : "the stream is NULL"};
  khoroEvent_t event;
  OK(khoroEventCreate(&event));
  check_stream_refused(stream, event, refusal);
  if (stream) {
    REFUSED(add(&pair, 0, stream));
    OK(khoroGroupStart());
    REFUSED(add(&pair, 0, stream));
    OK(khoroGroupEnd());
  }
  OK(khoroEventDestroy(event));
  OK(khoroCommAbort(pair.comms[0])); /* so that a call that was made does not wait */
  destroy_pair(&pair);
}

static void handles(void) {
  CHECK_REFUSED(khoroInvalidArgument, "stream is NULL", khoroStreamCreate(NULL));
  check_refused(NULL);
  check_refused((khoroStream_t)(uintptr_t)1);
  check_refused((khoroStream_t)(uintptr_t)0x200000000);
  check_refused((khoroStream_t)(uintptr_t)UINT64_MAX);
  khoroStream_t stream = make_stream();
  const khoroStream_t old = stream;
  OK(khoroStreamDestroy(stream));
  check_refused(old);
  stream = make_stream(); /* the entry is used again, the handle is not */
  check_refused(old);
  OK(khoroStreamDestroy(stream));
}

static void destroyed_inside_a_group(void) {
  struct pair pair = make_pair();
  khoroStream_t stream = make_stream();
  OK(khoroGroupStart());
  OK(add(&pair, 0, stream));
  OK(khoroCommDestroy(pair.comms[0]));
  CHECK_REFUSED(khoroInvalidArgument, "communicator handle is stale", khoroGroupEnd());
  OK(khoroStreamDestroy(stream));
  OK(khoroCommDestroy(pair.comms[1]));
}

/* What threads of this process sleep with stays with it while it has a communicator. */
static void let_the_worker_sleep(struct pair* pair) {
  const int before = descriptors();
  const khoroStream_t stream = make_stream();
  enum { doorbell = 1, alarm = 2 };
  OK(add(pair, 0, stream)); /* and rank 1 does not come */
  for (int i = 0; i < 1000 && descriptors() < before + doorbell + alarm; ++i) sleep_ms(10);
  OK(add(pair, 1, NULL));
  OK(khoroStreamDestroy(stream));
}

static void nothing_is_left(void) {
  struct pair pair = make_pair();
  let_the_worker_sleep(&pair);
  const struct usage base = usage();
  for (int round = 0; round < 30; ++round) {
    const khoroStream_t streams[2] = {make_stream(), make_stream()};
    CHECK(usage().threads == base.threads + 1);
    for (int i = 0; i < 10; ++i)
      for (int r = 0; r < 2; ++r) OK(add(&pair, r, streams[r]));
    OK(khoroStreamDestroy(streams[0]));
    OK(khoroStreamDestroy(streams[1]));
    CHECK(pair.out[0] == 3);
    check_base(base, round);
  }
  destroy_pair(&pair);
}

static void a_forked_child_is_told(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  OK(add(&pair, 0, stream));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const struct refusal refusal = {khoroInvalidUsage, "forked"};
    check_stream_refused(stream, NULL, refusal);
    REFUSED(add(&pair, 1, stream));
    exit(0);
  }
  check_exit(child);
  OK(add(&pair, 1, stream)); /* behind rank 0's on the stream, and it cannot go on */
  OK(khoroCommAbort(pair.comms[0]));
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static struct meeting_place* place;

static void killed_while_it_is_waited_for(khoroComm_t comm, int rank, int ranks) {
  const khoroStream_t stream = make_stream();
  int32_t in = 1, out = 0;
  (void)ranks;
  OK(khoroBarrier(comm, stream));
  OK(khoroStreamSynchronize(stream));
  if (rank == 1) {
    set_flag(place, 1);
    sleep_ms(100000);
  }
  OK(khoroAllReduce(&in, &out, 1, khoroInt32, khoroSum, comm, stream));
  OK(khoroBarrier(comm, stream));
  set_flag(place, rank);
  const double start = seconds();
  CHECK_RESULT(khoroPeerDied, khoroStreamSynchronize(stream));
  CHECK_WORDS("rank 1");
  CHECK(seconds() - start < soon);
  OK(khoroStreamDestroy(stream));
}

int main(void) {
  /* First the processes: they must not be forked from one that has used Khoro. */
  run_processes(3, calls_that_do_not_match);
  place = make_meeting_place();
  run_and_kill_rank_1(place, 3, killed_while_it_is_waited_for, 0);
  an_error_in_the_middle();
  bad_arguments_fail_the_call();
  run_threads(3, calls_that_do_not_match);
  for (int i = 0; i < 10; ++i) run_threads(4, many_ranks_fail_at_once);
  abort_frees_who_waits();
  a_blocking_call_behind_a_stream_keeps_its_deadline();
  destroying_a_communicator_waits_for_its_calls();
  handles();
  destroyed_inside_a_group();
  nothing_is_left();
  a_forked_child_is_told();
  return 0;
}
