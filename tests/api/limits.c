/* SPDX-License-Identifier: Apache-2.0 */
/* Little room: few descriptors, little address space. A job works or says what has run out, and
 * nothing is lost on the way. */
#include "usage.h"
#include "values.h"

#include <sys/resource.h>

static void use(khoroComm_t comm, int rank, int ranks) {
  static float in[8][3000], out[8][3000];
  fill(in[rank], khoroFloat32, 3000, rank, 0);
  OK(khoroAllReduce(in[rank], out[rank], 3000, khoroFloat32, khoroSum, comm, NULL));
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += contribution(r, 2999);
  CHECK(out[rank][2999] == (float)sum);
  OK(khoroGroupStart());
  OK(khoroSend(in[rank], 3000, khoroFloat32, (rank + 1) % ranks, comm, NULL));
  OK(khoroRecv(out[rank], 3000, khoroFloat32, (rank + ranks - 1) % ranks, comm, NULL));
  OK(khoroGroupEnd());
  OK(khoroBarrier(comm, NULL));
}

static void allow_descriptors(int count) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = (rlim_t)count;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* All ranks of a job in this process, by an id. What khoroGroupEnd returned. */
static khoroResult_t one_process(int ranks) {
  khoroUniqueId id;
  khoroComm_t comms[8] = {0};
  khoroResult_t result = khoroGetUniqueId(&id);
  if (result != khoroSuccess) return result;
  OK(khoroGroupStart());
  for (int r = 0; r < ranks; ++r) OK(khoroCommInitRank(&comms[r], ranks, id, r));
  if ((result = khoroGroupEnd()) != khoroSuccess) return result;
  run_on_threads(comms, 0, ranks, ranks, use);
  for (int r = 0; r < ranks; ++r) OK(khoroCommDestroy(comms[r]));
  return khoroSuccess;
}

static void use_in_one_process(void) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    run_threads(ranks, use);
    OK(one_process(ranks));
  }
}

static void sixty_four_descriptors_are_enough_for_a_small_job(void) {
  allow_descriptors(64);
  for (int ranks = 2; ranks <= 4; ++ranks) run_processes(ranks, use);
  run_in_child(use_in_one_process);
}

static int says_what_has_run_out(void) {
  const char* words = khoroGetLastError(NULL);
  return strstr(words, "files") || strstr(words, "descriptors");
}

static khoroResult_t one_process_with(int left, const char* deadline) {
  CHECK(setenv("KHORO_INIT_DEADLINE", deadline, 1) == 0);
  /* What earlier rounds have left for those who come late is there yet. */
  allow_descriptors(descriptors() + left);
  forget_words();
  const khoroResult_t result = one_process(2);
  allow_descriptors(512);
  return result;
}

/* In a child of its own. */
static void fewer_descriptors_are_an_error_that_says_so(void) {
  enum { control = 3 }; /* of the control thread, which may stay until the next call */
  const int base = descriptors();
  int worked = 0, failed = 0;
  for (int left = 0; left <= 50; ++left) {
    khoroResult_t result = one_process_with(left, "300ms");
    /* A busy machine may be the reason. */
    if (result == khoroTimeout && !says_what_has_run_out()) result = one_process_with(left, "10s");
    if (result == khoroSuccess) {
      ++worked;
      continue;
    }
    CHECK(result == khoroSystemError || result == khoroRemoteError || result == khoroTimeout);
    if (!says_what_has_run_out()) {
      fprintf(stderr, "%d left: %s\n", left, khoroGetLastError(NULL));
      abort();
    }
    ++failed;
  }
  CHECK(worked > 0 && failed > 0);
  const double end = seconds() + 30;
  while (descriptors() > base + control && seconds() < end) sleep_ms(20);
  CHECK(descriptors() <= base + control);
}

static size_t address_space(void) {
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%zu", &pages) == 1);
  fclose(file);
  return pages * 4096;
}

/* In a child of its own, which exits 0 if it worked and 1 if it was told what has run out. */
static int works_in(size_t bytes) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    const size_t all = address_space() + bytes;
    const struct rlimit limit = {all, all};
    khoroComm_t comms[2];
    float in[2] = {1, 1}, out[2] = {0};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    khoroResult_t result = khoroCommInitAllHost(comms, 2);
    if (result == khoroSuccess) {
      OK(khoroGroupStart());
      for (int r = 0; r < 2; ++r) {
        result = khoroAllReduce(&in[r], &out[r], 1, khoroFloat32, khoroSum, comms[r], NULL);
        CHECK(result == khoroSuccess || result == khoroOutOfMemory);
      }
      result = khoroGroupEnd();
      for (int r = 0; r < 2; ++r) OK(khoroCommDestroy(comms[r]));
    }
    if (result == khoroSuccess) exit(0);
    /* A thread that has no room for its stack cannot be started; the system does not say why. */
    CHECK(result == khoroOutOfMemory || result == khoroSystemError);
    CHECK(strlen(khoroGetLastError(NULL)) > 0);
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
  return WEXITSTATUS(status) == 0;
}

static void too_little_address_space_is_an_error_that_says_so(void) {
  if (SANITIZED) return; /* a sanitizer needs terabytes of it */
  int worked = 0, failed = 0;
  for (size_t bytes = 16 << 10; bytes <= (size_t)1 << 30; bytes += bytes / 4) {
    const int works = works_in(bytes);
    worked += works;
    failed += !works;
  }
  CHECK(worked > 0 && failed > 0);
}

static void one_of_two_has_too_little_address_space(void) {
  if (SANITIZED) return;
  struct meeting_place* place = make_meeting_place();
  pid_t children[2];
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] > 0) continue;
    khoroComm_t comm = NULL;
    const khoroUniqueId id = id_at(place, rank == 0);
    if (rank == 0) {
      CHECK_RESULT(khoroRemoteError, khoroCommInitRank(&comm, 2, id, rank));
      CHECK_WORDS("rank 1");
      CHECK_WORDS("cannot map");
    } else {
      const size_t all = address_space() + (4 << 20);
      const struct rlimit limit = {all, all};
      CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
      CHECK_RESULT(khoroOutOfMemory, khoroCommInitRank(&comm, 2, id, rank));
      CHECK_WORDS("cannot map");
    }
    exit(0);
  }
  for (int rank = 0; rank < 2; ++rank) check_exit(children[rank]);
}

int main(void) {
  sixty_four_descriptors_are_enough_for_a_small_job();
  run_in_child(fewer_descriptors_are_an_error_that_says_so);
  too_little_address_space_is_an_error_that_says_so();
  one_of_two_has_too_little_address_space();
  return 0;
}
