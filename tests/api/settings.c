/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the environment: a forced algorithm, a given plan, and values that are refused with
 * words. */
#include "collective_cases.h"

static char lines[1 << 16];
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_line(void* context, int level, const char* line) {
  (void)context, (void)level;
  pthread_mutex_lock(&lines_lock);
  if (strlen(lines) + strlen(line) + 2 < sizeof lines) strcat(strcat(lines, line), "\n");
  pthread_mutex_unlock(&lines_lock);
}

static void sum_is_right(khoroComm_t comm, int rank, int ranks) {
  allreduce_case(comm, rank, ranks, khoroFloat32, khoroSum, 5000);
}

static void forced_algorithms(void) {
  static const char* const names[] = {
      "ring",        "one-shot",           "two-shot",         "two-way-ring",
      "double-tree", "recursive-doubling", "halving-doubling", "two-level"};
  OK(khoroSetLogCallback(keep_line, NULL));
  setenv("KHORO_LOG", "info", 1);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    char setting[64], line[64];
    snprintf(setting, sizeof setting, "allreduce:%s", names[i]);
    snprintf(line, sizeof line, "plan allreduce.%s ranks 3 program hash ", names[i]);
    setenv("KHORO_ALGORITHM", setting, 1);
    lines[0] = 0;
    run_threads(3, sum_is_right);
    check_words(__FILE__, __LINE__, lines, line);
  }
  setenv("KHORO_LOG", "warn", 1);
  OK(khoroSetLogCallback(NULL, NULL));
}

static void init_refuses(const char* name, const char* value) {
  khoroComm_t none = NULL;
  setenv(name, value, 1);
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitAllHost(&none, 2));
  CHECK(!none);
  CHECK_WORDS(name);
  unsetenv(name);
}

/* Slots with which some collective could not run are refused before any call. */
static void one_slot(void) {
  setenv("KHORO_ALGORITHM", "allreduce:ring", 1);
  init_refuses("KHORO_SLOTS", "1");
  CHECK_WORDS("KHORO_SLOTS=1: allreduce.ring needs 2");
  unsetenv("KHORO_ALGORITHM");
  init_refuses("KHORO_SLOTS", "1");
  CHECK_WORDS("KHORO_SLOTS=1: allgather.ring needs 2");
  setenv("KHORO_SLOTS", "1", 1);
  run_threads(1, sum_is_right); /* who is alone needs none */
  unsetenv("KHORO_SLOTS");
}

/* In exact mode every reduction is folded in rank order, which not every algorithm does. */
static void exact(void) {
  setenv("KHORO_DETERMINISM", "exact", 1);
  init_refuses("KHORO_ALGORITHM", "allreduce:ring");
  CHECK_WORDS("KHORO_ALGORITHM=allreduce:ring with KHORO_DETERMINISM=exact");
  CHECK_WORDS("one-shot, two-shot");
  init_refuses("KHORO_ALGORITHM", "reduce:chain");
  init_refuses("KHORO_ALGORITHM", "reducescatter:ring");
  setenv("KHORO_ALGORITHM", "broadcast:chain", 1); /* reduces nothing */
  run_threads(3, sum_is_right);
  setenv("KHORO_ALGORITHM", "allreduce:two-shot", 1);
  run_threads(3, sum_is_right);
  unsetenv("KHORO_ALGORITHM");
  unsetenv("KHORO_DETERMINISM");
  init_refuses("KHORO_DETERMINISM", "maybe");
  CHECK_WORDS("default, exact");
  init_refuses("KHORO_PARTIALS", "f64");
  CHECK_WORDS("dtype, f32");
}

#ifdef KHORO_TEST_SWITCHES
static char path[] = "/tmp/khoro-test-plan-XXXXXX";

static void write_plan(const char* text, size_t bytes) {
  FILE* file = fopen(path, "wb");
  CHECK(file && fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0);
}

/* Everything goes to rank 0 and comes back. */
static const char plan[] =
    "plan allreduce.by_hand ranks 2 chunks 1\n"
    "rank 0\n"
    "  lane 0\n"
    "    recv 1 | reduce input[0] | write output[0] | send 1\n"
    "rank 1\n"
    "  lane 0\n"
    "    read input[0] | send 0\n"
    "    recv 0 | write output[0]\n";

static void given_plan(void) {
  const int descriptor = mkstemp(path);
  CHECK(descriptor >= 0 && close(descriptor) == 0);
  setenv("KHORO_TEST_PLAN_FILE", path, 1);
  OK(khoroSetLogCallback(keep_line, NULL));
  setenv("KHORO_LOG", "info", 1);
  lines[0] = 0;
  write_plan(plan, sizeof plan - 1);
  run_threads(2, sum_is_right);
  check_words(__FILE__, __LINE__, lines, "plan allreduce.by_hand ranks 2 program hash ");
  setenv("KHORO_LOG", "warn", 1);
  OK(khoroSetLogCallback(NULL, NULL));
  /* Cut at any byte, it is refused with its line, or is a plan still and then at worst a failed
   * call. */
  for (size_t bytes = 0; bytes + 1 < sizeof plan; ++bytes) {
    khoroComm_t comms[2];
    write_plan(plan, bytes);
    const khoroResult_t result = khoroCommInitAllHost(comms, 2);
    if (result == khoroSuccess) {
      OK(khoroCommDestroy(comms[0]));
      OK(khoroCommDestroy(comms[1]));
      continue;
    }
    CHECK(result == khoroInvalidArgument);
    CHECK_WORDS("KHORO_TEST_PLAN_FILE");
  }
  CHECK(unlink(path) == 0);
  init_refuses("KHORO_TEST_PLAN_FILE", path);
}

/* A send that nobody receives and a receive that nobody feeds end at the deadline. */
static const char stuck[] =
    "plan allreduce.stuck ranks 2 chunks 1\n"
    "rank 0\n"
    "  lane 0\n"
    "    recv 1 | reduce input[0] | write output[0]\n"
    "rank 1\n"
    "  lane 0\n"
    "    recv 0 | reduce input[0] | write output[0]\n";

static void call_is_stuck(khoroComm_t comm, int rank, int ranks) {
  float in = 1, out;
  (void)rank, (void)ranks;
  OK(khoroCommSetDeadline(comm, 200));
  CHECK_RESULT(khoroTimeout, khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
}

static void stuck_plan(void) {
  strcpy(path, "/tmp/khoro-test-plan-XXXXXX");
  const int descriptor = mkstemp(path);
  CHECK(descriptor >= 0 && close(descriptor) == 0);
  write_plan(stuck, sizeof stuck - 1);
  setenv("KHORO_TEST_PLAN_FILE", path, 1);
  run_threads(2, call_is_stuck);
  unsetenv("KHORO_TEST_PLAN_FILE");
  CHECK(unlink(path) == 0);
}
#endif

int main(void) {
  forced_algorithms();
  init_refuses("KHORO_ALGORITHM", "allreduce:nonsense");
  CHECK_WORDS("allreduce:ring");
  init_refuses("KHORO_ALGORITHM", "ring");
  init_refuses("KHORO_ALGORITHM", ":");
  one_slot();
  exact();
  init_refuses("KHORO_SLOTS", "0");
  init_refuses("KHORO_SLOTS", "many");
  init_refuses("KHORO_DEADLINE", "-1");
#ifdef KHORO_TEST_SWITCHES
  given_plan();
  stuck_plan();
#endif
  return 0;
}
