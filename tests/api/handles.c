/* SPDX-License-Identifier: Apache-2.0 */
/* Stale and invented handles, second threads, forked children: errors, never a crash. */
#include "usage.h"
#include "values.h"

static void every_call_refuses(khoroComm_t comm) {
  float in[4] = {0}, out[4];
  int number = 77;
  khoroResult_t error = khoroInternalError;
  const khoroResult_t bad = khoroInvalidArgument;
  CHECK_RESULT(bad, khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_RESULT(bad, khoroReduceScatter(in, out, 1, khoroFloat32, khoroSum, comm, NULL));
  CHECK_RESULT(bad, khoroAllGather(in, out, 1, khoroFloat32, comm, NULL));
  CHECK_RESULT(bad, khoroBroadcast(in, out, 1, khoroFloat32, 0, comm, NULL));
  CHECK_RESULT(bad, khoroBarrier(comm, NULL));
  CHECK_RESULT(bad, khoroSend(in, 1, khoroFloat32, 0, comm, NULL));
  CHECK_RESULT(bad, khoroRecv(out, 1, khoroFloat32, 0, comm, NULL));
  CHECK_RESULT(bad, khoroCommCount(comm, &number));
  CHECK_RESULT(bad, khoroCommUserRank(comm, &number));
  CHECK_RESULT(bad, khoroCommGetAsyncError(comm, &error));
  CHECK_RESULT(bad, khoroCommSetDeadline(comm, 5));
  CHECK_RESULT(bad, khoroCommAbort(comm));
  CHECK_RESULT(bad, khoroCommDestroy(comm));
  CHECK(number == 77 && error == khoroInternalError);
  CHECK(strlen(khoroGetLastError(comm)) > 0);
}

static khoroComm_t shared;

static void* call_from_second_thread(void* unused) {
  float in = 1, out = 0;
  (void)unused;
  sleep_ms(200); /* the main thread is in its call by now */
  CHECK_RESULT(khoroInvalidUsage,
               khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, shared, NULL));
  CHECK_WORDS("another thread");
  CHECK_RESULT(khoroInvalidUsage, khoroCommDestroy(shared));
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
    float in = 1, out = 0;
    khoroComm_t other;
    CHECK(descriptors() == base);
    CHECK_RESULT(khoroInvalidUsage,
                 khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
    CHECK_WORDS("forked");
    CHECK_RESULT(khoroInvalidUsage, khoroCommInitAllHost(&other, 1));
    CHECK_RESULT(khoroInvalidUsage, khoroCommDestroy(comm));
    exit(0);
  }
  check_exit(child);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
}

int main(void) {
  every_call_refuses(NULL);
  every_call_refuses((khoroComm_t)(uintptr_t)1);
  every_call_refuses((khoroComm_t)(uintptr_t)UINT64_MAX);
  every_call_refuses((khoroComm_t)(uintptr_t)0x100000000);
  every_call_refuses((khoroComm_t)(uintptr_t)0x200000000);
  int on_stack;
  every_call_refuses((khoroComm_t)(void*)&on_stack);

  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  const khoroComm_t old = comm;
  OK(khoroCommDestroy(comm));
  every_call_refuses(old);
  /* The entry is used again, the handle is not. */
  OK(khoroCommInitAllHost(&comm, 1));
  every_call_refuses(old);
  for (uint64_t i = 1; i < 8; ++i) every_call_refuses((khoroComm_t)((uintptr_t)comm + (i << 32)));
  OK(khoroCommDestroy(comm));

  second_thread_is_told();
  child_is_told();
  return 0;
}
