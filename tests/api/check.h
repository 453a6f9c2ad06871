/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the C face share: checks that end the process, and ranks as threads or as
 * processes. A test is a program that exits 0. */
#ifndef KHORO_TESTS_CHECK_H
#define KHORO_TESTS_CHECK_H

#define _GNU_SOURCE
#include <khoro/khoro.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                  \
    }                                                                           \
  } while (0)

/* A call that fails leaves words of its own: what CHECK_WORDS finds is not from an earlier one. */
#define CHECK_RESULT(expected, call) \
  (forget_words(), check_result(__FILE__, __LINE__, #call, expected, call))
#define OK(call) check_result(__FILE__, __LINE__, #call, khoroSuccess, call)
/* The last failed call's words hold `text`. */
#define CHECK_WORDS(text) check_words(__FILE__, __LINE__, khoroGetLastError(NULL), text)
#define CHECK_REFUSED(expected, text, call) (CHECK_RESULT(expected, call), CHECK_WORDS(text))

/* Fails in a way that no test expects. */
static inline void forget_words(void) {
  khoroComm_t none;
  (void)khoroCommInitAllHost(&none, -77);
}

static inline void check_result(const char* file, int line, const char* call,
                                khoroResult_t expected, khoroResult_t got) {
  if (got == expected && (got == khoroSuccess || got == khoroInProgress)) return;
  const char* words = khoroGetLastError(NULL);
  if (got == expected && !strstr(words, "-77 ranks")) return;
  fprintf(stderr, "%s:%d: %s\n  is \"%s\"%s, expected \"%s\": %s\n", file, line, call,
          khoroGetErrorString(got), got == expected ? " without words" : "",
          khoroGetErrorString(expected), words);
  abort();
}

static inline void check_words(const char* file, int line, const char* words, const char* text) {
  if (strstr(words, text)) return;
  fprintf(stderr, "%s:%d: \"%s\" does not say \"%s\"\n", file, line, words, text);
  abort();
}

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void sleep_ms(int ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

static const double soon = 5; /* generous: 1 s is promised */

static inline khoroResult_t async_error(khoroComm_t comm) {
  khoroResult_t error = khoroInternalError;
  OK(khoroCommGetAsyncError(comm, &error));
  return error;
}

/* What comes after that state, or the state itself if it lasts. */
static inline khoroResult_t wait_while(khoroResult_t state, khoroComm_t comm) {
  const double end = seconds() + 20;
  khoroResult_t error = async_error(comm);
  for (; error == state && seconds() < end; error = async_error(comm)) sleep_ms(5);
  return error;
}

static inline khoroConfig_t nonblocking(void) {
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

typedef void (*rank_body)(khoroComm_t comm, int rank, int ranks);

struct rank_thread {
  rank_body body;
  khoroComm_t comm;
  int rank, ranks;
};

static inline void* run_rank_thread(void* argument) {
  const struct rank_thread* self = argument;
  self->body(self->comm, self->rank, self->ranks);
  return NULL;
}

/* Runs `body` on `count` threads, as the ranks from `first`. Without communicators they have yet to
 * join. */
static inline void run_on_threads(const khoroComm_t* comms, int first, int count, int ranks,
                                  rank_body body) {
  struct rank_thread selves[64];
  pthread_t threads[64];
  for (int t = 0; t < count; ++t) {
    selves[t] = (struct rank_thread){body, comms ? comms[t] : NULL, first + t, ranks};
    CHECK(pthread_create(&threads[t], NULL, run_rank_thread, &selves[t]) == 0);
  }
  for (int t = 0; t < count; ++t) CHECK(pthread_join(threads[t], NULL) == 0);
}

/* Runs `body` on threads of this process, as the ranks of one new communicator. */
static inline void run_threads(int ranks, rank_body body) {
  khoroComm_t comms[64];
  OK(khoroCommInitAllHost(comms, ranks));
  run_on_threads(comms, 0, ranks, ranks, body);
  for (int r = 0; r < ranks; ++r) OK(khoroCommDestroy(comms[r]));
}

/* What forked ranks share before they meet. */
struct meeting_place {
  volatile int written;
  khoroUniqueId id;
  volatile int flags[64];
};

static inline struct meeting_place* make_meeting_place(void) {
  void* memory = mmap(NULL, sizeof(struct meeting_place), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

static inline void set_flag(struct meeting_place* place, int flag) {
  __atomic_store_n(&place->flags[flag], 1, __ATOMIC_RELEASE);
}

static inline void await_flag(const struct meeting_place* place, int flag) {
  while (!__atomic_load_n(&place->flags[flag], __ATOMIC_ACQUIRE)) sleep_ms(1);
}

/* The id of the place, which is made by one process and awaited by the others. */
static inline khoroUniqueId id_at(struct meeting_place* place, int makes_it) {
  if (makes_it) {
    OK(khoroGetUniqueId(&place->id));
    __atomic_store_n(&place->written, 1, __ATOMIC_RELEASE);
  }
  while (!__atomic_load_n(&place->written, __ATOMIC_ACQUIRE)) sleep_ms(1);
  return place->id;
}

static inline khoroComm_t join_at(struct meeting_place* place, int ranks, int rank) {
  khoroComm_t comm;
  OK(khoroCommInitRank(&comm, ranks, id_at(place, rank == 0), rank));
  return comm;
}

static inline pid_t start_process(struct meeting_place* place, int ranks, int rank,
                                  rank_body body) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child > 0) return child;
  khoroComm_t comm = join_at(place, ranks, rank);
  body(comm, rank, ranks);
  OK(khoroCommDestroy(comm));
  exit(0);
}

static inline void check_exit(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void check_killed(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Runs `body` in processes of its own, as the ranks of one new communicator. The caller must not
 * have used Khoro. */
static inline void run_processes_at(struct meeting_place* place, int ranks, rank_body body) {
  pid_t children[64];
  for (int r = 0; r < ranks; ++r) children[r] = start_process(place, ranks, r, body);
  for (int r = 0; r < ranks; ++r) check_exit(children[r]);
}

static inline void run_processes(int ranks, rank_body body) {
  struct meeting_place* place = make_meeting_place();
  run_processes_at(place, ranks, body);
  munmap(place, sizeof *place);
}

/* The same, but rank 1 is killed `after_ms` after every rank has set its flag. */
static inline void run_and_kill_rank_1(struct meeting_place* place, int ranks, rank_body body,
                                       int after_ms) {
  pid_t children[64];
  for (int r = 0; r < ranks; ++r) children[r] = start_process(place, ranks, r, body);
  for (int r = 0; r < ranks; ++r) await_flag(place, r);
  sleep_ms(after_ms);
  CHECK(kill(children[1], SIGKILL) == 0);
  check_killed(children[1]);
  for (int r = 0; r < ranks; ++r)
    if (r != 1) check_exit(children[r]);
}

static inline khoroStatistics_t statistics_of(khoroComm_t comm) {
  khoroStatistics_t statistics = KHORO_STATISTICS_INITIALIZER;
  OK(khoroCommQuery(comm, &statistics));
  return statistics;
}

static inline void run_in_child(void (*body)(void)) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body();
    exit(0);
  }
  check_exit(child);
}

/* Runs `body` on `threads` threads of each of `processes` processes, as ranks that have yet to
 * join. */
static inline void run_joiners(int processes, int threads, rank_body body) {
  pid_t children[64];
  for (int p = 0; p < processes; ++p) {
    children[p] = fork();
    CHECK(children[p] >= 0);
    if (children[p] > 0) continue;
    run_on_threads(NULL, p * threads, threads, processes * threads, body);
    exit(0);
  }
  for (int p = 0; p < processes; ++p) check_exit(children[p]);
}

#endif
