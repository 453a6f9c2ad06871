/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators made of the ranks of another one: who is in them and in which order, that they live
 * on their own, and what a rank that cannot take part does to the others. */
#include "check.h"

#include <limits.h>

/* `child` has these ranks of the parent, in this order, and works. */
static void consists_of(khoroComm_t child, int rank, const int* members, int count) {
  int32_t mine = rank, all[8];
  int got = 0, place = -1;
  OK(khoroCommCount(child, &got));
  CHECK(got == count);
  OK(khoroCommUserRank(child, &place));
  CHECK(members[place] == rank);
  OK(khoroAllGather(&mine, all, 1, khoroInt32, child, NULL));
  for (int i = 0; i < count; ++i) CHECK(all[i] == members[i]);
}

/* Six ranks: the even ones and the odd ones, but for the last, which wants none. */
static void splits_in_two(khoroComm_t comm, int rank, const int* keys, const int* even,
                          const int* odd) {
  khoroComm_t child = comm; /* is overwritten in any case */
  const int color = rank == 5 ? KHORO_SPLIT_NOCOLOR : rank % 2 == 0 ? 0 : 5;
  OK(khoroCommSplit(comm, color, keys[rank], &child, NULL));
  if (rank == 5) {
    CHECK(!child);
    return;
  }
  CHECK(child && child != comm);
  consists_of(child, rank, rank % 2 == 0 ? even : odd, rank % 2 == 0 ? 3 : 2);
  OK(khoroCommDestroy(child));
}

static void order_is_by_key_and_rank(khoroComm_t comm, int rank, int ranks) {
  CHECK(ranks == 6);
  splits_in_two(comm, rank, (int[]){100, 93, 86, 79, 72, 65}, (int[]){4, 2, 0}, (int[]){3, 1});
  splits_in_two(comm, rank, (int[]){7, 7, 7, 7, 7, 7}, (int[]){0, 2, 4}, (int[]){1, 3});
  splits_in_two(comm, rank, (int[]){INT_MAX, 0, INT_MIN, -1, 0, 3}, (int[]){2, 4, 0},
                (int[]){3, 1});
  splits_in_two(comm, rank, (int[]){5, INT_MAX, 5, INT_MAX, INT_MIN, 0}, (int[]){4, 0, 2},
                (int[]){1, 3});
  OK(khoroBarrier(comm, NULL)); /* and the parent works as before */
}

static void children_outlive_their_parents(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t all, half, pair;
  (void)ranks;
  OK(khoroCommSplit(comm, 0, -rank, &all, NULL)); /* 3 2 1 0 */
  OK(khoroCommSplit(all, rank / 2, rank, &half, NULL));
  OK(khoroCommDestroy(all));
  consists_of(half, rank, rank < 2 ? (int[]){0, 1} : (int[]){2, 3}, 2);
  OK(khoroCommSplit(half, 9, -rank, &pair, NULL));
  OK(khoroCommDestroy(half));
  consists_of(pair, rank, rank < 2 ? (int[]){1, 0} : (int[]){3, 2}, 2);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommAbort(pair));
  OK(khoroBarrier(comm, NULL)); /* which is independent of it */
  OK(khoroCommDestroy(pair));
}

static void all_want_none(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = comm;
  (void)rank, (void)ranks;
  OK(khoroCommSplit(comm, KHORO_SPLIT_NOCOLOR, 0, &child, NULL));
  CHECK(!child);
  OK(khoroBarrier(comm, NULL));
}

/* Without a config the child is as its parent was made. */
static void settings_are_inherited(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t quick, heir;
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = "KHORO_DEADLINE=300ms;KHORO_SLOTS=16";
  (void)ranks;
  OK(khoroCommSplit(comm, 0, rank, &quick, &config));
  OK(khoroCommSplit(quick, 0, rank, &heir, NULL));
  const double start = seconds();
  if (rank == 0) {
    CHECK_RESULT(khoroTimeout, khoroBarrier(heir, NULL));
    CHECK(seconds() - start < soon);
  } else {
    CHECK(wait_while(khoroSuccess, heir) == khoroTimeout);
  }
  OK(khoroCommDestroy(heir));
  OK(khoroCommDestroy(quick));
  OK(khoroBarrier(comm, NULL));
}

static void different_choices_are_named(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = rank == 1 ? "KHORO_SLOTS=4" : "KHORO_SLOTS=16";
  (void)ranks;
  CHECK_RESULT(khoroMismatch, khoroCommSplit(comm, 0, rank, &child, &config));
  CHECK_WORDS("KHORO_SLOTS");
  CHECK_WORDS("'4' on rank 1");
  CHECK(!child);
  OK(khoroBarrier(comm, NULL));
}

/* Rank 2 cannot take part; those of its color are told at once, the others do not mind. Its
 * environment is its own, so ranks are processes. */
static void a_rank_that_fails_is_named(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  (void)ranks;
  if (rank == 2) setenv("KHORO_SLOTS", "several", 1);
  const double start = seconds();
  const khoroResult_t result = khoroCommSplit(comm, rank == 3, rank, &child, NULL);
  CHECK(seconds() - start < 20);
  if (rank == 2) unsetenv("KHORO_SLOTS");
  if (rank == 3) {
    CHECK(result == khoroSuccess);
    OK(khoroCommDestroy(child));
  } else {
    CHECK(result == (rank == 2 ? khoroInvalidArgument : khoroRemoteError) && !child);
    if (rank != 2) CHECK_WORDS("rank 2 failed");
    CHECK_WORDS("KHORO_SLOTS is 'several'");
  }
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommSplit(comm, 0, rank, &child, NULL)); /* and the next one is made */
  OK(khoroBarrier(child, NULL));
  OK(khoroCommDestroy(child));
}

static void another_call_does_not_match(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  (void)ranks;
  CHECK_RESULT(khoroMismatch,
               rank == 1 ? khoroBarrier(comm, NULL) : khoroCommSplit(comm, 0, rank, &child, NULL));
  CHECK(!child);
  /* "..., the others called" where all records were there already, "; make" where two were. */
  CHECK_WORDS("rank 1 called khoroBarrier()");
}

static void bad_arguments_are_refused(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.blocking = 2;
  (void)rank, (void)ranks;
  const khoroResult_t bad = khoroInvalidArgument;
  CHECK_REFUSED(bad, "color is -2", khoroCommSplit(comm, -2, 0, &child, NULL));
  CHECK_REFUSED(bad, "newcomm is NULL", khoroCommSplit(comm, 0, 0, NULL, NULL));
  CHECK_REFUSED(bad, "the communicator is NULL", khoroCommSplit(NULL, 0, 0, &child, NULL));
  CHECK_REFUSED(bad, "blocking is 2", khoroCommSplit(comm, 0, 0, &child, &config));
  CHECK(!child);
  OK(khoroBarrier(comm, NULL));
}

static void begun_and_waited_for(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = comm;
  const khoroConfig_t config = nonblocking();
  (void)ranks;
  if (rank == 0) sleep_ms(300);
  const double start = seconds();
  CHECK_RESULT(khoroInProgress,
               khoroCommSplit(comm, rank == 1 ? KHORO_SPLIT_NOCOLOR : 4, -rank, &child, &config));
  CHECK(seconds() - start < soon);
  CHECK((child == NULL) == (rank == 1));
  if (rank != 0) { /* it waits for rank 0 for a while */
    const khoroResult_t error = async_error(comm);
    CHECK(error == khoroInProgress || error == khoroSuccess);
  }
  CHECK(wait_while(khoroInProgress, comm) == khoroSuccess);
  OK(khoroBarrier(comm, NULL));
  if (rank == 1) return;
  CHECK(wait_while(khoroInProgress, child) == khoroSuccess);
  consists_of(child, rank, (int[]){3, 2, 0}, 3);
  OK(khoroCommDestroy(child));
}

/* Nobody else comes to the split of rank 0; giving it up takes the parent along. */
static void given_up(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  const khoroConfig_t config = nonblocking();
  (void)ranks;
  if (rank == 0) {
    CHECK_RESULT(khoroInProgress, khoroCommSplit(comm, 0, 0, &child, &config));
    CHECK(async_error(comm) == khoroInProgress);
    CHECK_REFUSED(khoroInvalidUsage, "split of this communicator is under way",
                  khoroBarrier(comm, NULL));
    CHECK_REFUSED(khoroInvalidUsage, "split of this communicator is under way",
                  khoroCommDestroy(comm));
    const double start = seconds();
    OK(khoroCommDestroy(child));
    CHECK(seconds() - start < soon);
  }
  CHECK(wait_while(khoroSuccess, comm) == khoroAborted);
}

static struct meeting_place* place;

static void one_is_killed(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  (void)ranks;
  set_flag(place, rank);
  if (rank == 1) sleep_ms(100000);
  CHECK_RESULT(khoroPeerDied, khoroCommSplit(comm, 0, rank, &child, NULL));
  CHECK_WORDS("rank 1");
}

/* One thread drives all ranks: only a group can make them meet. */
static void split_in_a_group(int blocking) {
  enum { ranks = 4 };
  khoroComm_t comms[ranks], children[ranks];
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.blocking = blocking;
  OK(khoroCommInitAllHost(comms, ranks));
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) {
    children[r] = comms[r];
    OK(khoroCommSplit(comms[r], r == 2 ? KHORO_SPLIT_NOCOLOR : r / 3, -r, &children[r], &config));
  }
  CHECK_RESULT(blocking ? khoroSuccess : khoroInProgress, khoroGroupEnd());
  CHECK(!children[2]);
  for (int r = 0; r < ranks; ++r) {
    CHECK(wait_while(khoroInProgress, comms[r]) == khoroSuccess);
    if (children[r]) CHECK(wait_while(khoroInProgress, children[r]) == khoroSuccess);
  }
  int count = 0, rank = -1;
  OK(khoroCommCount(children[0], &count));
  OK(khoroCommUserRank(children[0], &rank));
  CHECK(count == 2 && rank == 1);
  OK(khoroCommCount(children[3], &count));
  CHECK(count == 1);
  for (int r = 0; r < ranks; ++r) {
    OK(khoroCommDestroy(comms[r]));
    if (children[r]) OK(khoroCommDestroy(children[r]));
  }
}

static void one_split_of_each_in_a_group(void) {
  khoroComm_t comm, first = NULL, second = NULL;
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroGroupStart());
  OK(khoroCommSplit(comm, 0, 0, &first, NULL));
  OK(khoroCommSplit(comm, 1, 0, &second, NULL));
  CHECK_REFUSED(khoroInvalidUsage, "the group holds two splits", khoroGroupEnd());
  CHECK(!first && !second);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
}

static void split_until_it_fails(khoroComm_t comm, int rank, int ranks) {
  khoroComm_t child = NULL;
  khoroResult_t result = khoroSuccess;
  (void)ranks;
  while (result == khoroSuccess) {
    result = khoroCommSplit(comm, rank % 2, 0, &child, NULL);
    if (result == khoroSuccess) OK(khoroCommDestroy(child));
  }
  CHECK(result == khoroRevoked);
  CHECK(async_error(comm) == khoroRevoked);
}

static void* revoke_later(void* comm) {
  sleep_ms(1);
  OK(khoroCommRevoke(comm, KHORO_REVOKE_DEFAULT));
  return NULL;
}

/* A split that its parent's end overtakes says why the parent ended. */
static void revoked_meanwhile(void) {
  enum { ranks = 4 };
  for (int round = 0; round < 100; ++round) {
    khoroComm_t comms[ranks];
    pthread_t thread;
    OK(khoroCommInitAllHost(comms, ranks));
    CHECK(pthread_create(&thread, NULL, revoke_later, comms[round % ranks]) == 0);
    run_on_threads(comms, 0, ranks, ranks, split_until_it_fails);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int r = 0; r < ranks; ++r) OK(khoroCommDestroy(comms[r]));
  }
}

static void of_ranks(void (*run)(int, rank_body)) {
  run(6, order_is_by_key_and_rank);
  run(4, children_outlive_their_parents);
  run(3, all_want_none);
  run(2, settings_are_inherited);
  run(3, different_choices_are_named);
  run(3, another_call_does_not_match);
  run(2, bad_arguments_are_refused);
  run(4, begun_and_waited_for);
  run(3, given_up);
}

int main(void) {
  of_ranks(run_processes); /* processes first: this one has not used Khoro yet */
  run_processes(4, a_rank_that_fails_is_named);
  place = make_meeting_place();
  run_and_kill_rank_1(place, 3, one_is_killed, 0);
  of_ranks(run_threads);
  split_in_a_group(1);
  split_in_a_group(0);
  one_split_of_each_in_a_group();
  revoked_meanwhile();
  return 0;
}
