/* SPDX-License-Identifier: Apache-2.0 */
/* The system has no more threads: an init call says so, and the process goes on. */
#include "check.h"

/* How many can still be started. */
extern volatile int threads_left;

enum { ranks = 4 };

/* The last rank lives in another process. */
static void wait_for_the_group(struct meeting_place* place) {
  khoroComm_t comm = NULL;
  const khoroUniqueId id = id_at(place, 0);
  const double start = seconds();
  set_flag(place, 0);
  CHECK_RESULT(khoroRemoteError, khoroCommInitRank(&comm, ranks + 1, id, ranks));
  CHECK_WORDS("cannot start 3 threads");
  CHECK(seconds() - start < 20); /* the init deadline is 60 s */
  exit(0);
}

static void a_group_whose_ranks_are_awaited(struct meeting_place* place, pid_t other) {
  khoroComm_t comms[ranks] = {0};
  const khoroUniqueId id = id_at(place, 1);
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) OK(khoroCommInitRank(&comms[r], ranks + 1, id, r));
  await_flag(place, 0);
  threads_left = 0;
  CHECK_RESULT(khoroSystemError, khoroGroupEnd());
  CHECK_WORDS("cannot start 3 threads");
  threads_left = 1000;
  check_exit(other);
}

static void a_group_of_inits(void) {
  for (int left = 0; left < ranks - 1; ++left) {
    khoroComm_t comms[ranks] = {0};
    khoroUniqueId id;
    OK(khoroGetUniqueId(&id)); /* starts the control thread */
    OK(khoroGroupStart());
    for (int r = 0; r < ranks; ++r) OK(khoroCommInitRank(&comms[r], ranks, id, r));
    const double start = seconds();
    threads_left = left;
    CHECK_RESULT(khoroSystemError, khoroGroupEnd());
    CHECK_WORDS("cannot start 3 threads");
    CHECK(seconds() - start < 20); /* none waits for those that could not begin */
    threads_left = 1000;
    for (int r = 0; r < ranks; ++r) CHECK(!comms[r]);
  }
}

static void the_first_communicator(void) {
  khoroUniqueId id;
  threads_left = 0;
  CHECK_RESULT(khoroSystemError, khoroGetUniqueId(&id));
  CHECK_WORDS("control thread");
  threads_left = 1000;
}

static void afterwards(void) {
  khoroComm_t comms[ranks] = {0};
  khoroUniqueId id;
  OK(khoroGetUniqueId(&id));
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) OK(khoroCommInitRank(&comms[r], ranks, id, r));
  OK(khoroGroupEnd());
  for (int r = 0; r < ranks; ++r) OK(khoroCommDestroy(comms[r]));
}

int main(void) {
  struct meeting_place* place = make_meeting_place();
  const pid_t other = fork(); /* nobody has used Khoro yet */
  CHECK(other >= 0);
  if (other == 0) wait_for_the_group(place);
  the_first_communicator();
  a_group_of_inits();
  a_group_whose_ranks_are_awaited(place, other);
  afterwards();
  return 0;
}
