/* SPDX-License-Identifier: Apache-2.0 */
/* The system has no more threads: an init call says so, and the process goes on. */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>

/* How many threads can still be started. */
static volatile int threads_left = 1000;

/* In place of the C library's, for the library under test too. */
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*body)(void*), void* argument) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (threads_left == 0) return EAGAIN;
  --threads_left;
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, body, argument);
}

enum { ranks = 4 };

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
  the_first_communicator();
  a_group_of_inits();
  afterwards();
  return 0;
}
