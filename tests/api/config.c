/* SPDX-License-Identifier: Apache-2.0 */
/* What is chosen for one communicator: it works, it is compared where all ranks must agree, the
 * environment wins, and what cannot be read is refused with field, value and what is legal. */
#include "check.h"

static khoroUniqueId id;
static khoroConfig_t configs[4];
static khoroResult_t results[4];
static char words[4][1024];
static khoroComm_t comms[4];

static void join_with_config(khoroComm_t none, int rank, int ranks) {
  comms[rank] = none;
  results[rank] = khoroCommInitRankConfig(&comms[rank], ranks, id, rank, &configs[rank]);
  snprintf(words[rank], sizeof words[rank], "%s", khoroGetLastError(NULL));
}

static void join_all(int ranks) {
  OK(khoroGetUniqueId(&id));
  run_on_threads(NULL, 0, ranks, ranks, join_with_config);
}

static void choose_for_all(int ranks, const char* settings) {
  for (int r = 0; r < ranks; ++r) {
    configs[r] = (khoroConfig_t)KHORO_CONFIG_INITIALIZER;
    configs[r].settings = settings;
  }
}

static void a_chosen_deadline_ends_a_call(void) {
  choose_for_all(2, "KHORO_DEADLINE=200ms; KHORO_SLOTS=16");
  join_all(2);
  for (int r = 0; r < 2; ++r) CHECK(results[r] == khoroSuccess);
  const double start = seconds();
  CHECK_RESULT(khoroTimeout, khoroBarrier(comms[0], NULL)); /* rank 1 does not come */
  CHECK(seconds() - start < soon);
  for (int r = 0; r < 2; ++r) OK(khoroCommDestroy(comms[r]));
}

static void ranks_that_chose_differently_are_told(void) {
  choose_for_all(3, "KHORO_SLOTS=16");
  configs[1].settings = "KHORO_SLOTS=4";
  join_all(3);
  for (int r = 0; r < 3; ++r) {
    CHECK(results[r] == khoroMismatch && !comms[r]);
    check_words(__FILE__, __LINE__, words[r], "KHORO_SLOTS is '");
    check_words(__FILE__, __LINE__, words[r], "'4' on rank 1");
    check_words(__FILE__, __LINE__, words[r], "'16' on rank ");
  }
}

static void the_environment_wins(void) {
  setenv("KHORO_SLOTS", "8", 1);
  choose_for_all(2, "KHORO_SLOTS=16");
  configs[1].settings = "KHORO_SLOTS=4";
  join_all(2);
  unsetenv("KHORO_SLOTS");
  for (int r = 0; r < 2; ++r) {
    CHECK(results[r] == khoroSuccess);
    OK(khoroCommDestroy(comms[r]));
  }
}

/* A rank whose settings are bad says so to the others, which do not wait for their deadline. */
static void a_bad_environment_fails_all_ranks_soon(void) {
  choose_for_all(2, NULL);
  setenv("KHORO_DEADLINE", "never", 1);
  const double start = seconds();
  CHECK_REFUSED(khoroInvalidArgument, "KHORO_DEADLINE is 'never'", khoroGetUniqueId(&id));
  unsetenv("KHORO_DEADLINE");
  OK(khoroGetUniqueId(&id));
  pthread_t thread;
  struct rank_thread first = {join_with_config, NULL, 0, 2};
  CHECK(pthread_create(&thread, NULL, run_rank_thread, &first) == 0);
  sleep_ms(200);
  setenv("KHORO_DEADLINE", "never", 1);
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitRank(&comms[1], 2, id, 1));
  CHECK_WORDS("KHORO_DEADLINE is 'never'");
  unsetenv("KHORO_DEADLINE");
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(seconds() - start < 20); /* and not the minute of the deadline */
  CHECK(results[0] == khoroRemoteError);
  check_words(__FILE__, __LINE__, words[0], "rank 1 failed: KHORO_DEADLINE is 'never'");
}

static void refused(khoroConfig_t config, const char* first, const char* second) {
  khoroComm_t none = NULL;
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitRankConfig(&none, 1, id, 0, &config));
  CHECK_WORDS("config: ");
  CHECK_WORDS(first);
  CHECK_WORDS(second);
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitWorldConfig(&none, &config));
  CHECK_WORDS(first);
  CHECK(!none);
}

static void bad_configs_are_refused(void) {
  const khoroConfig_t good = KHORO_CONFIG_INITIALIZER;
  CHECK(good.settings == KHORO_CONFIG_UNDEF_PTR);
  khoroConfig_t bad = good;
  refused((khoroConfig_t){0}, "its magic is 0x0", "KHORO_CONFIG_INITIALIZER");
  bad.size = 8;
  refused(bad, "its size is 8 and not ", "KHORO_CONFIG_INITIALIZER");
  bad = good;
  bad.size = SIZE_MAX;
  refused(bad, "its size is 18446744073709551615", "KHORO_CONFIG_INITIALIZER");
  bad = good;
  bad.version = KHORO_VERSION + 100;
  refused(bad, "its version is 200", "this library has version 100");
  bad = good;
  bad.settings = "KHORO_SLOTS=65";
  refused(bad, "KHORO_SLOTS is '65'", "a number from 1 to 64");
  bad.settings = "KHORO_SLOT=8";
  refused(bad, "'KHORO_SLOT' cannot be chosen", "did you mean KHORO_SLOTS?");
  bad.settings = "KHORO_RANK=0";
  refused(bad, "'KHORO_RANK' cannot be chosen", "communicator");
  bad.settings = "KHORO_SLOTS";
  refused(bad, "'KHORO_SLOTS' has no value", "NAME=VALUE");
  /* A patch of the same version knows the same fields, and NULL chooses nothing. */
  khoroComm_t comm;
  OK(khoroGetUniqueId(&id));
  bad = good;
  bad.version = KHORO_VERSION + 1;
  OK(khoroCommInitRankConfig(&comm, 1, id, 0, &bad));
  OK(khoroCommDestroy(comm));
  OK(khoroGetUniqueId(&id));
  OK(khoroCommInitRankConfig(&comm, 1, id, 0, NULL));
  OK(khoroCommDestroy(comm));
}

int main(void) {
  a_chosen_deadline_ends_a_call();
  ranks_that_chose_differently_are_told();
  the_environment_wins();
  a_bad_environment_fails_all_ranks_soon();
  bad_configs_are_refused();
  return 0;
}
