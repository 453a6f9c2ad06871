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

/* Runs `body` on threads of this process, as the ranks of one new communicator. */
static inline void run_threads(int ranks, rank_body body) {
  khoroComm_t comms[64];
  struct rank_thread selves[64];
  pthread_t threads[64];
  OK(khoroCommInitAllHost(comms, ranks));
  for (int r = 0; r < ranks; ++r) {
    selves[r] = (struct rank_thread){body, comms[r], r, ranks};
    CHECK(pthread_create(&threads[r], NULL, run_rank_thread, &selves[r]) == 0);
  }
  for (int r = 0; r < ranks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
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

static inline khoroComm_t join_at(struct meeting_place* place, int ranks, int rank) {
  khoroComm_t comm;
  if (rank == 0) {
    OK(khoroGetUniqueId(&place->id));
    __atomic_store_n(&place->written, 1, __ATOMIC_RELEASE);
  }
  while (!__atomic_load_n(&place->written, __ATOMIC_ACQUIRE)) sleep_ms(1);
  OK(khoroCommInitRank(&comm, ranks, place->id, rank));
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

/* Runs `body` in processes of its own, as the ranks of one new communicator. The caller must not
 * have used Khoro. */
static inline void run_processes(int ranks, rank_body body) {
  struct meeting_place* place = make_meeting_place();
  pid_t children[64];
  for (int r = 0; r < ranks; ++r) children[r] = start_process(place, ranks, r, body);
  for (int r = 0; r < ranks; ++r) check_exit(children[r]);
  munmap(place, sizeof *place);
}

#endif
