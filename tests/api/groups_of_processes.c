/* SPDX-License-Identifier: Apache-2.0 */
/* Sends, receives and groups between processes. */
#include "values.h"

enum { long_count = 300000 };

/* Both directions at once, far longer than what the slots of a channel hold. */
static void exchange(khoroComm_t comm, int rank, int ranks) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int round = 0; round < 20; ++round) {
    const size_t count = round % 2 ? long_count : 7, bytes = count * 4;
    void *in = guarded(bytes), *out = guarded(bytes), *expected = guarded(bytes);
    fill(in, khoroFloat32, count, rank + round, 0);
    fill(expected, khoroFloat32, count, previous + round, 0);
    OK(khoroGroupStart());
    OK(khoroSend(in, count, khoroFloat32, next, comm, NULL));
    OK(khoroRecv(out, count, khoroFloat32, previous, comm, NULL));
    OK(khoroGroupEnd());
    check_equal(out, expected, khoroFloat32, count, "a message between processes");
    release(in, bytes), release(out, bytes), release(expected, bytes);
  }
}

/* Each process is one rank of two communicators, and drives them in opposite orders. */
static khoroComm_t second;

static void two_communicators(khoroComm_t comm, int rank, int ranks) {
  for (int round = 0; round < 50; ++round) {
    int32_t a = rank, b = 2 * rank, sum_a = 0, sum_b = 0;
    OK(khoroGroupStart());
    if (rank % 2) OK(khoroAllReduce(&b, &sum_b, 1, khoroInt32, khoroSum, second, NULL));
    OK(khoroAllReduce(&a, &sum_a, 1, khoroInt32, khoroSum, comm, NULL));
    if (rank % 2 == 0) OK(khoroAllReduce(&b, &sum_b, 1, khoroInt32, khoroSum, second, NULL));
    OK(khoroGroupEnd());
    CHECK(sum_a == ranks * (ranks - 1) / 2);
    CHECK(sum_b == ranks * (ranks - 1));
  }
}

static struct meeting_place* other_place;

static void make_second(khoroComm_t comm, int rank, int ranks) {
  second = join_at(other_place, ranks, rank);
  two_communicators(comm, rank, ranks);
  OK(khoroCommDestroy(second));
}

int main(void) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    run_processes(ranks, exchange);
    other_place = make_meeting_place();
    run_processes(ranks, make_second);
  }
  return 0;
}
