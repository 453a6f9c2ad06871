/* SPDX-License-Identifier: Apache-2.0 */
/* How a communicator ends: destroyed twice, after an abort, with a peer that is dead or with only
 * one survivor that aborts. Always an answer, never a crash, and soon. */
#include "refusals.h"

static struct meeting_place* place;

static void check_stale(khoroComm_t comm) {
  check_comm_refused(comm, (struct refusal){khoroInvalidArgument, "communicator handle is stale"});
}

static void a_second_destroy_is_an_error(void) {
  khoroComm_t comms[2];
  OK(khoroCommInitAllHost(comms, 2));
  OK(khoroCommDestroy(comms[0]));
  check_stale(comms[0]);
  OK(khoroCommDestroy(comms[1]));
  check_stale(comms[1]);
  /* In a group it is the call that is refused, and the group goes on. */
  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroGroupStart());
  CHECK_REFUSED(khoroInvalidArgument, "stale", khoroBarrier(comms[0], NULL));
  OK(khoroBarrier(comm, NULL));
  OK(khoroGroupEnd());
  OK(khoroCommDestroy(comm));
}

static void an_aborted_communicator_is_destroyed_like_another(void) {
  for (int aborts = 1; aborts <= 3; ++aborts) {
    khoroComm_t comms[3];
    OK(khoroCommInitAllHost(comms, 3));
    for (int i = 0; i < aborts; ++i) OK(khoroCommAbort(comms[i]));
    OK(khoroCommAbort(comms[0]));
    for (int i = 0; i < 3; ++i) CHECK_RESULT(khoroAborted, khoroBarrier(comms[i], NULL));
    for (int i = 0; i < 3; ++i) OK(khoroCommDestroy(comms[(i + aborts) % 3]));
    for (int i = 0; i < 3; ++i) check_stale(comms[i]);
  }
}

/* What a group has put off fails at its end when the communicator was destroyed meanwhile. */
static void a_group_outlives_a_communicator(void) {
  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroGroupStart());
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
  CHECK_REFUSED(khoroInvalidArgument, "stale", khoroGroupEnd());
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
}

enum { ranks = 4, victim = 1, aborter = 2 };

/* The first failure of a loop of allreduces. */
static khoroResult_t loop(khoroComm_t comm, int rank, size_t count, double* began) {
  float* buffer = calloc(count, sizeof *buffer);
  CHECK(buffer);
  khoroResult_t result = khoroSuccess;
  while (result == khoroSuccess) {
    *began = seconds();
    result = khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroMax, comm, NULL);
    set_flag(place, rank);
  }
  free(buffer);
  return result;
}

static void check_quick(double began) { CHECK(seconds() - began < soon); }

/* Rank 1 is killed, rank 2 aborts on its own account, then all do; all that in any order. */
static void survive(khoroComm_t comm, int rank, size_t count) {
  float in = 1, out = 0;
  double began;
  const khoroResult_t result = loop(comm, rank, count, &began);
  CHECK(result == khoroPeerDied || result == khoroAborted);
  if (rank != aborter) check_quick(began);
  if (rank == aborter) {
    began = seconds();
    OK(khoroCommAbort(comm));
    check_quick(began);
  }
  began = seconds();
  CHECK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL) == result);
  CHECK(async_error(comm) == result);
  OK(khoroCommAbort(comm));
  OK(khoroCommDestroy(comm));
  check_quick(began);
  check_stale(comm);
}

static void* abort_at_the_flag(void* comm) {
  await_flag(place, 60);
  const double began = seconds();
  OK(khoroCommAbort(comm));
  check_quick(began);
  return NULL;
}

static void one_survivor_aborts(size_t count, int from_a_thread) {
  pid_t children[ranks];
  place = make_meeting_place();
  for (int rank = 0; rank < ranks; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] > 0) continue;
    khoroComm_t comm = join_at(place, ranks, rank);
    pthread_t thread;
    const int aborts = from_a_thread && rank == aborter;
    if (aborts) CHECK(pthread_create(&thread, NULL, abort_at_the_flag, comm) == 0);
    if (!aborts) survive(comm, rank, count);
    if (aborts) {
      double began;
      const khoroResult_t result = loop(comm, rank, count, &began);
      CHECK(result == khoroPeerDied || result == khoroAborted);
      check_quick(began);
      CHECK(pthread_join(thread, NULL) == 0);
      OK(khoroCommDestroy(comm));
    }
    exit(0);
  }
  for (int rank = 0; rank < ranks; ++rank) await_flag(place, rank);
  CHECK(kill(children[victim], SIGKILL) == 0);
  set_flag(place, 60);
  check_killed(children[victim]);
  for (int rank = 0; rank < ranks; ++rank)
    if (rank != victim) check_exit(children[rank]);
}

/* The k-th message between two of the ranks is no call of the others. */
static void messages_of_two_ranks(khoroComm_t comm, int rank, int size) {
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3 && rank < 2; ++i) {
      int32_t value = round * 3 + i, got = -1;
      if (rank == i % 2) {
        OK(khoroSend(&value, 1, khoroInt32, 1 - rank, comm, NULL));
      } else {
        OK(khoroRecv(&got, 1, khoroInt32, 1 - rank, comm, NULL));
        CHECK(got == value);
      }
    }
    int32_t one = rank, sum = 0;
    OK(khoroBarrier(comm, NULL));
    OK(khoroAllReduce(&one, &sum, 1, khoroInt32, khoroSum, comm, NULL));
    CHECK(sum == size * (size - 1) / 2);
  }
}

int main(void) {
  const size_t counts[] = {1, 1 << 20};
  for (int i = 0; i < 4; ++i) one_survivor_aborts(counts[i % 2], i / 2);
  run_processes(8, messages_of_two_ranks);
  run_threads(8, messages_of_two_ranks);
  a_second_destroy_is_an_error();
  an_aborted_communicator_is_destroyed_like_another();
  a_group_outlives_a_communicator();
  return 0;
}
