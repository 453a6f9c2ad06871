/* SPDX-License-Identifier: Apache-2.0 */
/* Stale and invented handles, second threads, forked children: errors, never a crash. */
#include "refusals.h"
#include "usage.h"

static void check_refused(khoroComm_t comm) {
  check_comm_refused(
      comm, (struct refusal){khoroInvalidArgument, comm ? "stale or was never made" : "is NULL"});
}

static khoroComm_t shared;

static void* call_from_second_thread(void* unused) {
  float in = 1, out = 0;
  (void)unused;
  sleep_ms(200); /* the main thread is in its call by now */
  CHECK_REFUSED(khoroInvalidUsage, "another thread",
                khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, shared, NULL));
  CHECK_REFUSED(khoroInvalidUsage, "another thread", khoroCommDestroy(shared));
  OK(khoroCommAbort(shared));
  return NULL;
}

static void second_thread_is_told(void) {
  khoroComm_t comms[2];
  pthread_t thread;
  float in = 1, out = 0;
  OK(khoroCommInitAllHost(comms, 2));
  shared = comms[0];
  /* Rank 1 never comes, so rank 0 is inside the call until the other thread aborts. */
  CHECK(pthread_create(&thread, NULL, call_from_second_thread, NULL) == 0);
  const khoroResult_t result = khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comms[0], NULL);
  CHECK(result == khoroAborted);
  CHECK(pthread_join(thread, NULL) == 0);
  OK(khoroCommDestroy(comms[0]));
  OK(khoroCommDestroy(comms[1]));
}

static void child_is_told(void) {
  khoroComm_t comm;
  khoroUniqueId id;
  const int base = descriptors();
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroGetUniqueId(&id)); /* a socket that listens, and the control thread */
  CHECK(descriptors() > base);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    khoroComm_t other;
    CHECK(descriptors() == base);
    check_comm_refused(comm, (struct refusal){khoroInvalidUsage, "forked"});
    CHECK_REFUSED(khoroInvalidUsage, "forked", khoroCommInitAllHost(&other, 1));
    exit(0);
  }
  check_exit(child);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
}

int main(void) {
  check_refused(NULL);
  check_refused((khoroComm_t)(uintptr_t)1);
  check_refused((khoroComm_t)(uintptr_t)UINT64_MAX);
  check_refused((khoroComm_t)(uintptr_t)0x100000000);
  check_refused((khoroComm_t)(uintptr_t)0x200000000);
  int on_stack;
  check_refused((khoroComm_t)(void*)&on_stack);

  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  const khoroComm_t old = comm;
  OK(khoroCommDestroy(comm));
  check_refused(old);
  /* The entry is used again, the handle is not. */
  OK(khoroCommInitAllHost(&comm, 1));
  check_refused(old);
  for (uint64_t i = 1; i < 8; ++i) check_refused((khoroComm_t)((uintptr_t)comm + (i << 32)));
  OK(khoroCommDestroy(comm));

  second_thread_is_told();
  child_is_told();
  return 0;
}
