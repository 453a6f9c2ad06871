/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into a program: how many threads can still be started, in place of the system's limit,
 * which does not bind the superuser. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

volatile int threads_left = 1000;

__attribute__((constructor)) static void take_limit(void) {
  const char* limit = getenv("THREADS_LEFT");
  if (limit) threads_left = atoi(limit);
}

/* In place of the C library's, for the libraries of the program too. */
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*body)(void*), void* argument) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (threads_left == 0) return EAGAIN;
  --threads_left;
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, body, argument);
}
