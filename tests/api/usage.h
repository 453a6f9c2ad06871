/* SPDX-License-Identifier: Apache-2.0 */
/* What this process holds and uses of the system: descriptors, threads, mappings, processor. */
#ifndef KHORO_TESTS_USAGE_H
#define KHORO_TESTS_USAGE_H

#include "check.h"

#include <dirent.h>

/* A sanitizer maps memory of its own while the program runs, and may have a thread that does. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static inline int entries(const char* directory) {
  int count = -3; /* ".", "..", and, of /proc/self/fd, the directory itself */
  DIR* open = opendir(directory);
  CHECK(open);
  while (readdir(open)) ++count;
  closedir(open);
  return count;
}

static inline int descriptors(void) { return entries("/proc/self/fd"); }

static inline int mappings(void) {
  int count = 0, c;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  while ((c = fgetc(maps)) != EOF) count += c == '\n';
  fclose(maps);
  return count;
}

struct usage {
  int descriptors, threads, mappings;
};

static inline struct usage usage(void) {
  const struct usage now = {descriptors(), entries("/proc/self/task") + 1, mappings()};
  return now;
}

/* The C library keeps stacks of ended threads and arenas of its allocator, hence the slack. */
enum { slack = 12 };

/* Ends the process unless it holds what it held at `base`. */
static inline void check_base(struct usage base, int round) {
  struct usage now = usage();
  /* A thread that was joined may be seen for a moment more. */
  for (int i = 0; i < 100 && now.threads > base.threads; ++i) {
    sleep_ms(10);
    now = usage();
  }
  if (now.descriptors == base.descriptors && now.threads == base.threads &&
      (now.mappings <= base.mappings + slack || SANITIZED))
    return;
  fprintf(stderr, "round %d: %d descriptors, %d threads, %d mappings; at first %d, %d, %d\n", round,
          now.descriptors, now.threads, now.mappings, base.descriptors, base.threads,
          base.mappings);
  abort();
}

/* Of this process, all threads. */
static inline double processor_seconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}
/* What a process that waits 3 s may use of it: 10 ms a second. */
static const double idle_seconds = SANITIZED ? 0.1 : 0.03;

#endif
