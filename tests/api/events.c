/* SPDX-License-Identifier: Apache-2.0 */
/* Events: when they are complete, what they carry, and who is told. */
#include "refusals.h"
#include "stream_cases.h"

#include <fcntl.h>
#include <poll.h>

static khoroEvent_t make_event(void) {
  khoroEvent_t event;
  OK(khoroEventCreate(&event));
  return event;
}

static khoroEvent_t record(khoroStream_t stream) {
  const khoroEvent_t event = make_event();
  OK(khoroEventRecord(event, stream));
  return event;
}

static int readable(khoroEvent_t event, int milliseconds) {
  struct pollfd polled = {-1, POLLIN, 0};
  OK(khoroEventDescriptor(event, &polled.fd));
  CHECK(poll(&polled, 1, milliseconds) >= 0);
  return polled.revents == POLLIN;
}

/* What a callback was told. */
struct told {
  volatile int times;
  khoroResult_t result;
  pthread_t thread;
  char words[200];
};

static void tell(void* context, khoroResult_t result) {
  struct told* told = context;
  told->result = result;
  told->thread = pthread_self();
  strncpy(told->words, khoroGetLastError(NULL), sizeof told->words - 1);
  __atomic_add_fetch(&told->times, 1, __ATOMIC_RELEASE);
}

static int times(struct told* told) { return __atomic_load_n(&told->times, __ATOMIC_ACQUIRE); }

static void wait_until_told(struct told* told) {
  const double end = seconds() + soon;
  while (times(told) == 0 && seconds() < end) sleep_ms(1);
  CHECK(times(told) == 1);
  CHECK(!pthread_equal(told->thread, pthread_self()));
}

static void one_that_was_never_recorded_is_complete(void) {
  const khoroEvent_t event = make_event();
  const khoroStream_t stream = make_stream();
  struct told told = {0};
  OK(khoroEventQuery(event));
  OK(khoroEventWait(event, -1));
  CHECK(readable(event, 0));
  OK(khoroStreamWaitEvent(stream, event));
  OK(khoroStreamSynchronize(stream));
  OK(khoroStreamDestroy(stream));
  OK(khoroEventCallback(event, tell, &told)); /* without any stream */
  wait_until_told(&told);
  CHECK(told.result == khoroSuccess);
  OK(khoroEventDestroy(event));
}

static void it_stands_for_its_place(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  const khoroEvent_t before = record(stream);
  OK(add(&pair, 0, stream));
  const khoroEvent_t after = record(stream);
  OK(khoroBarrier(pair.comms[0], stream));
  const khoroEvent_t last = record(stream);
  OK(khoroEventQuery(before));
  CHECK(khoroEventQuery(after) == khoroInProgress);
  OK(add(&pair, 1, NULL));
  OK(khoroEventWait(after, -1));
  CHECK(pair.out[0] == 3);
  CHECK(khoroEventQuery(last) == khoroInProgress);
  OK(khoroBarrier(pair.comms[1], NULL));
  OK(khoroEventWait(last, 60000));
  OK(khoroStreamDestroy(stream));
  OK(khoroEventQuery(last)); /* without its stream, too */
  OK(khoroEventDestroy(before));
  OK(khoroEventDestroy(after));
  OK(khoroEventDestroy(last));
  destroy_pair(&pair);
}

static void waiting_ends_when_the_time_is_over(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  OK(add(&pair, 0, stream));
  const khoroEvent_t event = record(stream);
  double start = seconds();
  CHECK(khoroEventWait(event, 0) == khoroInProgress);
  CHECK(seconds() - start < soon);
  start = seconds();
  CHECK(khoroEventWait(event, 50) == khoroInProgress);
  CHECK(seconds() - start > 0.045 && seconds() - start < soon);
  OK(add(&pair, 1, NULL));
  OK(khoroEventWait(event, INT64_MAX));
  OK(khoroEventWait(event, 0));
  OK(khoroEventDestroy(event));
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static void the_descriptor_follows_the_event(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  const khoroEvent_t event = make_event();
  int first = -1, second = -2;
  OK(khoroEventDescriptor(event, &first));
  for (int round = 0; round < 3; ++round) {
    OK(add(&pair, 0, stream));
    OK(khoroEventRecord(event, stream));
    CHECK(!readable(event, 20));
    OK(add(&pair, 1, NULL));
    CHECK(readable(event, 60000));
    CHECK(readable(event, 0)); /* stays so */
    OK(khoroEventQuery(event));
  }
  OK(khoroEventDescriptor(event, &second));
  CHECK(first == second);
  OK(khoroEventDestroy(event));
  CHECK(fcntl(first, F_GETFD) == -1);
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static void recorded_again(void) {
  struct pair pairs[2] = {make_pair(), make_pair()};
  const khoroStream_t streams[3] = {make_stream(), make_stream(), make_stream()};
  const khoroEvent_t event = make_event();
  struct told first = {0}, second = {0};
  OK(add(&pairs[0], 0, streams[0]));
  OK(khoroEventRecord(event, streams[0]));
  OK(khoroEventCallback(event, tell, &first));
  OK(khoroStreamWaitEvent(streams[2], event)); /* for the first record, whatever comes */
  OK(add(&pairs[1], 0, streams[1]));
  OK(khoroEventRecord(event, streams[1]));
  OK(khoroEventCallback(event, tell, &second));
  OK(add(&pairs[0], 1, NULL));
  wait_until_told(&first);
  OK(khoroStreamSynchronize(streams[2]));
  CHECK(khoroEventQuery(event) == khoroInProgress);
  CHECK(!readable(event, 0));
  OK(add(&pairs[1], 1, NULL));
  OK(khoroEventWait(event, -1));
  wait_until_told(&second);
  CHECK(times(&first) == 1);
  OK(khoroEventDestroy(event));
  for (int s = 0; s < 3; ++s) OK(khoroStreamDestroy(streams[s]));
  destroy_pair(&pairs[0]);
  destroy_pair(&pairs[1]);
}

static void it_carries_the_result_before_it(void) {
  struct pair fails = make_pair(), works = make_pair();
  const khoroStream_t stream = make_stream();
  struct told told = {0};
  OK(khoroCommSetDeadline(fails.comms[0], 200));
  OK(add(&works, 0, stream));
  const khoroEvent_t good = record(stream);
  OK(add(&fails, 0, stream));
  const khoroEvent_t bad = record(stream);
  const khoroEvent_t same_place = record(stream);
  OK(khoroEventCallback(bad, tell, &told));
  OK(add(&works, 0, stream));
  const khoroEvent_t good_again = record(stream);
  OK(khoroBarrier(fails.comms[0], stream));
  OK(add(&works, 0, stream));
  const khoroEvent_t first_of_two = record(stream);
  for (int i = 0; i < 3; ++i) OK(add(&works, 1, NULL));
  OK(khoroEventWait(good, -1));
  CHECK_RESULT(khoroTimeout, khoroEventWait(bad, -1));
  CHECK_WORDS("rank 1");
  CHECK_RESULT(khoroTimeout, khoroEventWait(same_place, -1));
  OK(khoroEventWait(good_again, -1));
  CHECK_RESULT(khoroTimeout, khoroEventWait(first_of_two, -1));
  CHECK_RESULT(khoroTimeout, khoroEventQuery(bad));
  CHECK(readable(bad, 0));
  wait_until_told(&told);
  CHECK(told.result == khoroTimeout && strstr(told.words, "rank 1"));
  CHECK_RESULT(khoroTimeout, khoroStreamSynchronize(stream));
  OK(khoroStreamDestroy(stream));
  const khoroEvent_t all[] = {good, bad, same_place, good_again, first_of_two};
  for (int i = 0; i < 5; ++i) OK(khoroEventDestroy(all[i]));
  destroy_pair(&fails);
  destroy_pair(&works);
}

static void streams_wait_for_events(void) {
  struct pair first = make_pair(), second = make_pair();
  const khoroStream_t streams[2] = {make_stream(), make_stream()};
  OK(add(&first, 0, streams[0]));
  const khoroEvent_t event = record(streams[0]);
  OK(khoroStreamWaitEvent(streams[1], event));
  OK(khoroEventDestroy(event)); /* it is waited for all the same */
  OK(add(&second, 0, streams[1]));
  OK(khoroCommSetDeadline(second.comms[0], 60000));
  const khoroStream_t other = make_stream();
  OK(add(&second, 1, other));
  sleep_ms(50);
  CHECK(khoroStreamQuery(other) == khoroInProgress); /* its peer has not begun */
  OK(add(&first, 1, NULL));
  OK(khoroStreamSynchronize(other));
  OK(khoroStreamSynchronize(streams[1]));
  CHECK(first.out[0] == 3 && second.out[0] == 3 && second.out[1] == 3);
  OK(khoroStreamDestroy(streams[0]));
  OK(khoroStreamDestroy(streams[1]));
  OK(khoroStreamDestroy(other));
  destroy_pair(&first);
  destroy_pair(&second);
}

/* What looks like a circle is none: an event is waited for as it was recorded then. */
static void streams_that_wait_for_each_other_go_on(void) {
  struct pair pairs[2] = {make_pair(), make_pair()};
  const khoroStream_t streams[2] = {make_stream(), make_stream()};
  const khoroEvent_t events[2] = {make_event(), make_event()};
  for (int round = 0; round < 50; ++round) {
    for (int s = 0; s < 2; ++s) {
      OK(khoroStreamWaitEvent(streams[s], events[1 - s]));
      OK(add(&pairs[s], 0, streams[s]));
      OK(khoroEventRecord(events[s], streams[s]));
      OK(khoroStreamWaitEvent(streams[s], events[s]));
    }
    for (int s = 0; s < 2; ++s) OK(add(&pairs[s], 1, NULL));
  }
  for (int s = 0; s < 2; ++s) {
    OK(khoroStreamSynchronize(streams[s]));
    CHECK(pairs[s].out[0] == 3);
    OK(khoroStreamDestroy(streams[s]));
    OK(khoroEventDestroy(events[s]));
    destroy_pair(&pairs[s]);
  }
}

static khoroEvent_t awaited;

static void* wait_for_it(void* result) {
  *(khoroResult_t*)result = khoroEventWait(awaited, -1);
  return NULL;
}

static void destroyed_while_it_is_waited_for(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  khoroResult_t result = khoroInternalError;
  struct told told = {0};
  pthread_t thread;
  OK(add(&pair, 0, stream));
  awaited = record(stream);
  OK(khoroEventCallback(awaited, tell, &told));
  CHECK(pthread_create(&thread, NULL, wait_for_it, &result) == 0);
  sleep_ms(100); /* the thread waits by now */
  OK(khoroEventDestroy(awaited));
  CHECK(times(&told) == 0);
  OK(add(&pair, 1, NULL));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(result == khoroSuccess);
  wait_until_told(&told);
  CHECK(told.result == khoroSuccess);
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

/* A callback calls Khoro, which says that it must not. */
struct trespass {
  struct told told;
  struct pair* pair;
  khoroStream_t stream;
  khoroEvent_t event;
};

static void trespass(void* context, khoroResult_t result) {
  struct trespass* self = context;
  khoroComm_t comm = self->pair->comms[0];
  khoroStream_t stream;
  const struct refusal refusal = {khoroInvalidUsage, "callback of Khoro"};
  check_comm_refused(comm, refusal);
  check_stream_refused(self->stream, self->event, refusal);
  check_event_refused(self->event, self->stream, refusal);
  REFUSED(khoroBarrier(comm, self->stream));
  REFUSED(khoroGroupStart());
  REFUSED(khoroGroupEnd());
  REFUSED(khoroStreamCreate(&stream));
  CHECK(strlen(khoroGetErrorString(result)) > 0);
  tell(&self->told, result);
}

static void callbacks_must_not_call(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  struct trespass self = {.pair = &pair, .stream = stream};
  OK(add(&pair, 0, stream));
  self.event = record(stream);
  OK(khoroEventCallback(self.event, trespass, &self));
  CHECK_RESULT(khoroInvalidArgument, khoroEventCallback(self.event, NULL, NULL));
  OK(add(&pair, 1, NULL));
  wait_until_told(&self.told);
  /* And the worker goes on. */
  OK(add(&pair, 0, stream));
  OK(add(&pair, 1, NULL));
  OK(khoroStreamDestroy(stream));
  OK(khoroEventDestroy(self.event));
  destroy_pair(&pair);
}

/* Thousands, in the order of the stream. */
struct counted {
  int at;
  int* next;
};

static void count_up(void* context, khoroResult_t result) {
  struct counted* self = context;
  CHECK(result == khoroSuccess);
  CHECK(*self->next == self->at);
  __atomic_store_n(self->next, self->at + 1, __ATOMIC_RELEASE);
}

static void callbacks_come_in_order(khoroComm_t comm, int rank, int ranks) {
  enum { many = 2000 };
  const khoroStream_t stream = make_stream();
  const khoroEvent_t event = make_event();
  static struct counted all[8][many];
  int32_t in = 1, out = 0;
  int next = 0;
  for (int i = 0; i < many; ++i) {
    OK(khoroAllReduce(&in, &out, 1, khoroInt32, khoroSum, comm, stream));
    OK(khoroEventRecord(event, stream));
    all[rank][i] = (struct counted){i, &next};
    OK(khoroEventCallback(event, count_up, &all[rank][i]));
  }
  OK(khoroEventWait(event, -1));
  CHECK(out == ranks);
  const double end = seconds() + 60;
  while (__atomic_load_n(&next, __ATOMIC_ACQUIRE) < many && seconds() < end) sleep_ms(1);
  CHECK(__atomic_load_n(&next, __ATOMIC_ACQUIRE) == many);
  OK(khoroEventDestroy(event));
  OK(khoroStreamDestroy(stream));
}

static void an_open_group_keeps_its_streams(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  const khoroEvent_t event = make_event();
  OK(khoroGroupStart());
  OK(khoroEventRecord(event, stream));
  OK(add(&pair, 0, stream));
  CHECK_REFUSED(khoroInvalidUsage, "open group", khoroEventRecord(event, stream));
  CHECK_REFUSED(khoroInvalidUsage, "open group", khoroStreamWaitEvent(stream, event));
  OK(add(&pair, 1, stream));
  OK(khoroGroupEnd());
  OK(khoroEventRecord(event, stream));
  OK(khoroEventWait(event, -1));
  CHECK(pair.out[0] == 3);
  OK(khoroEventDestroy(event));
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static void check_refused(khoroEvent_t event) {
  const khoroStream_t stream = make_stream();
  check_event_refused(event, stream,
                      (struct refusal){khoroInvalidArgument,
                                       event ? "the event handle is stale" : "the event is NULL"});
  OK(khoroStreamDestroy(stream));
}

static void handles(void) {
  CHECK_RESULT(khoroInvalidArgument, khoroEventCreate(NULL));
  check_refused(NULL);
  check_refused((khoroEvent_t)(uintptr_t)1);
  check_refused((khoroEvent_t)(uintptr_t)0x200000000);
  const khoroEvent_t event = make_event();
  const khoroStream_t stream = make_stream();
  CHECK_REFUSED(khoroInvalidArgument, "the stream is NULL", khoroEventRecord(event, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "fd is NULL", khoroEventDescriptor(event, NULL));
  OK(khoroStreamDestroy(stream));
  CHECK_REFUSED(khoroInvalidArgument, "the stream handle is stale",
                khoroEventRecord(event, stream));
  OK(khoroEventDestroy(event));
  check_refused(event);
}

static void a_forked_child_is_told(void) {
  const khoroStream_t stream = make_stream();
  const khoroEvent_t event = record(stream);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    check_event_refused(event, stream, (struct refusal){khoroInvalidUsage, "forked"});
    exit(0);
  }
  check_exit(child);
  OK(khoroEventWait(event, -1));
  OK(khoroEventDestroy(event));
  OK(khoroStreamDestroy(stream));
}

int main(void) {
  run_processes(2, callbacks_come_in_order);
  one_that_was_never_recorded_is_complete();
  it_stands_for_its_place();
  waiting_ends_when_the_time_is_over();
  the_descriptor_follows_the_event();
  recorded_again();
  it_carries_the_result_before_it();
  streams_wait_for_events();
  streams_that_wait_for_each_other_go_on();
  destroyed_while_it_is_waited_for();
  callbacks_must_not_call();
  run_threads(3, callbacks_come_in_order);
  an_open_group_keeps_its_streams();
  handles();
  a_forked_child_is_told();
  return 0;
}
