/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on streams: their order, alone and in groups, by threads and processes. */
#include "stream_cases.h"
#include "usage.h"
#include "values.h"

/* Order. */

static void calls_run_in_order(khoroComm_t comm, int rank, int ranks) {
  enum { many = 3000 };
  khoroStream_t streams[2] = {make_stream(), make_stream()};
  uint64_t value = 1;
  (void)rank;
  /* Within a stream, thousands of them. */
  for (int i = 0; i < many; ++i) sum_in_place(&value, comm, streams[0]);
  OK(khoroStreamSynchronize(streams[0]));
  CHECK(value == power(ranks, many));
  OK(khoroStreamQuery(streams[0]));
  /* Calls of one communicator, whatever the stream. */
  value = 1;
  for (int i = 0; i < 100; ++i) sum_in_place(&value, comm, streams[i * 7 % 3 % 2]);
  OK(khoroStreamSynchronize(streams[0]));
  OK(khoroStreamSynchronize(streams[1]));
  CHECK(value == power(ranks, 100));
  /* One that blocks comes after those that are queued, and the other way round. */
  value = 1;
  for (int i = 0; i < 60; ++i) {
    const khoroStream_t stream = i % 4 == 3 ? NULL : streams[i % 2];
    sum_in_place(&value, comm, stream);
    if (!stream) CHECK(value == power(ranks, i + 1));
  }
  OK(khoroStreamDestroy(streams[0]));
  OK(khoroStreamDestroy(streams[1]));
  OK(khoroBarrier(comm, NULL));
}

/* Every kind of call, long ones too, beside each other on two communicators' worth of streams. */
static void every_kind_of_call(khoroComm_t comm, int rank, int ranks) {
  enum { count = 100000 };
  const khoroStream_t stream = make_stream();
  const size_t bytes = count * 4;
  void *in = guarded(bytes * 8), *out[6], *expected = guarded(bytes * 8);
  fill(in, khoroFloat32, count * (size_t)ranks, rank, 0);
  for (int i = 0; i < 6; ++i) out[i] = guarded(bytes * 8);
  OK(khoroAllReduce(in, out[0], count, khoroFloat32, khoroMax, comm, stream));
  OK(khoroBroadcast(in, out[1], count, khoroFloat32, ranks - 1, comm, stream));
  OK(khoroAllGather(in, out[2], count, khoroFloat32, comm, stream));
  OK(khoroReduceScatter(in, out[3], count, khoroFloat32, khoroSum, comm, stream));
  OK(khoroBarrier(comm, stream));
  OK(khoroGroupStart());
  OK(khoroSend(in, count, khoroFloat32, (rank + 1) % ranks, comm, stream));
  OK(khoroRecv(out[4], count, khoroFloat32, (rank + ranks - 1) % ranks, comm, stream));
  OK(khoroSend(in, 5, khoroFloat32, rank, comm, stream)); /* to itself */
  OK(khoroRecv(out[5], 5, khoroFloat32, rank, comm, stream));
  OK(khoroGroupEnd());
  OK(khoroStreamSynchronize(stream));
  for (size_t i = 0; i < count; ++i) store_reduced(expected, khoroFloat32, i, ranks, khoroMax, i);
  check_equal(out[0], expected, khoroFloat32, count, "allreduce on a stream");
  fill(expected, khoroFloat32, count, ranks - 1, 0);
  check_equal(out[1], expected, khoroFloat32, count, "broadcast on a stream");
  for (int r = 0; r < ranks; ++r)
    fill((float*)expected + (size_t)r * count, khoroFloat32, count, r, 0);
  check_equal(out[2], expected, khoroFloat32, count * (size_t)ranks, "allgather on a stream");
  for (size_t i = 0; i < count; ++i)
    store_reduced(expected, khoroFloat32, i, ranks, khoroSum, (size_t)rank * count + i);
  check_equal(out[3], expected, khoroFloat32, count, "reducescatter on a stream");
  fill(expected, khoroFloat32, count, (rank + ranks - 1) % ranks, 0);
  check_equal(out[4], expected, khoroFloat32, count, "a message on a stream");
  check_equal(out[5], in, khoroFloat32, 5, "a message to oneself on a stream");
  release(in, bytes * 8), release(expected, bytes * 8);
  for (int i = 0; i < 6; ++i) release(out[i], bytes * 8);
  OK(khoroStreamDestroy(stream));
}

static void a_call_on_a_stream_returns_before_its_peer_comes(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  OK(add(&pair, 0, stream));
  CHECK(khoroStreamQuery(stream) == khoroInProgress);
  OK(add(&pair, 1, NULL));
  CHECK(pair.out[1] == 3);
  OK(khoroStreamSynchronize(stream));
  CHECK(pair.out[0] == 3);
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static void a_stuck_stream_does_not_hold_up_another(void) {
  struct pair stuck = make_pair(), free = make_pair();
  const khoroStream_t streams[2] = {make_stream(), make_stream()};
  OK(add(&stuck, 0, streams[0]));
  for (int i = 0; i < 20; ++i) {
    free.out[0] = free.out[1] = 0;
    OK(add(&free, 0, streams[1]));
    OK(add(&free, 1, NULL));
    OK(khoroStreamSynchronize(streams[1]));
    CHECK(free.out[0] == 3 && free.out[1] == 3);
  }
  CHECK(khoroStreamQuery(streams[0]) == khoroInProgress);
  OK(add(&stuck, 1, streams[1]));
  OK(khoroStreamDestroy(streams[0])); /* waits */
  CHECK(stuck.out[0] == 3);
  OK(khoroStreamDestroy(streams[1]));
  destroy_pair(&stuck);
  destroy_pair(&free);
}

/* Groups. */

static void one_thread_is_all_ranks_on_one_stream(int ranks) {
  khoroComm_t comms[5];
  const khoroStream_t stream = make_stream();
  uint64_t values[5];
  OK(khoroCommInitAllHost(comms, ranks));
  for (int r = 0; r < ranks; ++r) values[r] = 1;
  for (int round = 0; round < 30; ++round) {
    OK(khoroGroupStart());
    for (int r = 0; r < ranks; ++r) {
      sum_in_place(&values[r], comms[r], stream);
      sum_in_place(&values[r], comms[r], stream);
    }
    OK(khoroGroupEnd());
  }
  OK(khoroStreamSynchronize(stream));
  for (int r = 0; r < ranks; ++r) CHECK(values[r] == power(ranks, 60));
  OK(khoroStreamDestroy(stream));
  for (int r = 0; r < ranks; ++r) OK(khoroCommDestroy(comms[r]));
}

static void a_group_waits_only_for_communicators_that_block(void) {
  struct pair blocks = make_pair(), queued = make_pair();
  const khoroStream_t stream = make_stream();
  OK(khoroGroupStart());
  OK(add(&blocks, 0, NULL));
  OK(add(&blocks, 1, stream)); /* of another communicator than rank 0's: queued */
  OK(add(&queued, 0, stream));
  OK(khoroGroupEnd());
  CHECK(blocks.out[0] == 3);
  CHECK(khoroStreamQuery(stream) == khoroInProgress);
  OK(add(&queued, 1, NULL));
  OK(khoroStreamSynchronize(stream));
  CHECK(blocks.out[1] == 3 && queued.out[0] == 3);
  /* Both kinds of calls of one communicator: the group waits for all of them. */
  int32_t again[2] = {0, 0};
  OK(khoroGroupStart());
  for (int r = 0; r < 2; ++r) {
    OK(add(&blocks, r, r == 0 ? stream : NULL));
    OK(khoroAllReduce(&blocks.out[r], &again[r], 1, khoroInt32, khoroSum, blocks.comms[r],
                      r == 0 ? NULL : stream));
  }
  OK(khoroGroupEnd());
  CHECK(again[0] == 6 && again[1] == 6);
  OK(khoroStreamDestroy(stream));
  destroy_pair(&blocks);
  destroy_pair(&queued);
}

/* Rank 0's call that blocks waits for one that is queued, which waits for rank 1's in this group.
 */
static void a_group_starts_all_while_some_wait(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  int32_t first = 0, one = 1;
  OK(khoroAllReduce(&one, &first, 1, khoroInt32, khoroSum, pair.comms[0], stream));
  OK(khoroGroupStart());
  OK(add(&pair, 0, NULL));
  OK(add(&pair, 1, NULL));
  OK(add(&pair, 1, NULL));
  OK(khoroGroupEnd());
  CHECK(pair.out[0] == 3 && pair.out[1] == 3 && first == 3);
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

/* Calls of one communicator on two streams of one group are a step of both. */
static void a_group_on_two_streams_joins_them(void) {
  struct pair joined = make_pair(), other = make_pair();
  const khoroStream_t streams[2] = {make_stream(), make_stream()};
  OK(khoroGroupStart());
  OK(add(&joined, 0, streams[0]));
  OK(khoroBarrier(joined.comms[0], streams[1]));
  OK(khoroGroupEnd());
  OK(add(&other, 0, streams[1])); /* comes after the group */
  OK(add(&other, 1, streams[0])); /* so does this, and still they meet */
  sleep_ms(50);
  CHECK(khoroStreamQuery(streams[0]) == khoroInProgress && other.out[0] == 0);
  OK(add(&joined, 1, NULL));
  OK(khoroBarrier(joined.comms[1], NULL));
  OK(khoroStreamSynchronize(streams[0]));
  OK(khoroStreamSynchronize(streams[1]));
  CHECK(joined.out[0] == 3 && other.out[0] == 3 && other.out[1] == 3);
  OK(khoroStreamDestroy(streams[0]));
  OK(khoroStreamDestroy(streams[1]));
  destroy_pair(&joined);
  destroy_pair(&other);
}

static void an_open_group_keeps_its_streams(void) {
  struct pair pair = make_pair();
  const khoroStream_t stream = make_stream();
  OK(khoroGroupStart());
  OK(khoroStreamSynchronize(stream));
  OK(add(&pair, 0, stream));
  CHECK_REFUSED(khoroInvalidUsage, "end the group first", khoroStreamSynchronize(stream));
  CHECK_REFUSED(khoroInvalidUsage, "end the group first", khoroStreamQuery(stream));
  CHECK_REFUSED(khoroInvalidUsage, "end the group first", khoroStreamDestroy(stream));
  OK(add(&pair, 1, stream));
  OK(khoroGroupEnd());
  OK(khoroStreamSynchronize(stream));
  CHECK(pair.out[0] == 3 && pair.out[1] == 3);
  OK(khoroStreamDestroy(stream));
  destroy_pair(&pair);
}

static khoroStream_t shared;

/* Threads, processes, handles. */

static void* queue_one(void* pair) {
  OK(add(pair, 0, shared));
  return NULL;
}

static void threads_may_take_turns(void) {
  struct pair pair = make_pair();
  pthread_t thread;
  shared = make_stream();
  OK(add(&pair, 0, shared));
  /* The worker is in the first call, and that is no second thread. */
  CHECK(pthread_create(&thread, NULL, queue_one, &pair) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(add(&pair, 1, NULL));
  OK(add(&pair, 1, NULL));
  OK(khoroStreamSynchronize(shared));
  CHECK(pair.out[0] == 3);
  OK(khoroStreamDestroy(shared));
  destroy_pair(&pair);
}

static void* own_communicators_and_streams(void* unused) {
  struct pair pairs[2] = {make_pair(), make_pair()};
  khoroStream_t streams[4];
  (void)unused;
  for (int s = 0; s < 4; ++s) streams[s] = make_stream();
  for (int round = 0; round < 100; ++round) {
    uint64_t values[4] = {1, 1, 1, 1};
    for (int i = 0; i < 10; ++i)
      for (int c = 0; c < 4; ++c)
        sum_in_place(&values[c], pairs[c / 2].comms[c % 2], streams[(c + i) % 4]);
    for (int s = 0; s < 4; ++s) OK(khoroStreamSynchronize(streams[s]));
    for (int c = 0; c < 4; ++c) CHECK(values[c] == power(2, 10));
  }
  for (int s = 0; s < 4; ++s) OK(khoroStreamDestroy(streams[s]));
  destroy_pair(&pairs[0]);
  destroy_pair(&pairs[1]);
  return NULL;
}

static void four_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    CHECK(pthread_create(&threads[i], NULL, own_communicators_and_streams, NULL) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A process with idle streams, and one whose stream is blocked on a late peer, cost next to no
 * time. */
static void idle(khoroComm_t comm, int rank, int ranks) {
  enum { late_ms = 3000 };
  const khoroStream_t stream = make_stream();
  int32_t in = 1, out = 0;
  OK(khoroAllReduce(&in, &out, 1, khoroInt32, khoroSum, comm, stream));
  OK(khoroStreamSynchronize(stream));
  const double before = processor_seconds();
  if (rank == 0) sleep_ms(late_ms);
  if (rank == 0) CHECK(processor_seconds() - before < idle_seconds);
  OK(khoroAllReduce(&in, &out, 1, khoroInt32, khoroSum, comm, stream));
  OK(khoroStreamSynchronize(stream));
  CHECK(out == ranks);
  if (rank == 1) CHECK(processor_seconds() - before < idle_seconds);
  OK(khoroStreamDestroy(stream));
}

int main(void) {
  /* First the processes: they must not be forked from one that has used Khoro. */
  run_processes(2, idle);
  run_processes(3, calls_run_in_order);
  run_processes(2, every_kind_of_call);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    run_threads(ranks, calls_run_in_order);
    run_threads(ranks, every_kind_of_call);
    one_thread_is_all_ranks_on_one_stream(ranks);
  }
  a_call_on_a_stream_returns_before_its_peer_comes();
  a_stuck_stream_does_not_hold_up_another();
  a_group_waits_only_for_communicators_that_block();
  a_group_starts_all_while_some_wait();
  a_group_on_two_streams_joins_them();
  an_open_group_keeps_its_streams();
  threads_may_take_turns();
  four_threads();
  return 0;
}
