/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that a launcher starts find each other: as processes, and as several threads of each.
 * Without a launcher the call says so. */
#include "collective_cases.h"

static void* one_thread(void* unused) {
  khoroComm_t comm;
  int rank = -1, ranks = -1;
  (void)unused;
  OK(khoroCommInitWorld(&comm));
  OK(khoroCommUserRank(comm, &rank));
  OK(khoroCommCount(comm, &ranks));
  CHECK(ranks == atoi(getenv("KHORO_SIZE")));
  int64_t one = 1 << rank, all = 0;
  OK(khoroAllReduce(&one, &all, 1, khoroInt64, khoroSum, comm, NULL));
  CHECK(all == (1 << ranks) - 1); /* every rank is there once */
  allreduce_case(comm, rank, ranks, khoroFloat32, khoroSum, 70001);
  broadcast_case(comm, rank, ranks - 1, khoroBfloat16, 4099);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
  return NULL;
}

int main(void) {
  khoroComm_t none = NULL;
  if (!getenv("KHORO_RANK")) {
    CHECK_RESULT(khoroInvalidUsage, khoroCommInitWorld(&none));
    CHECK_WORDS("khoro run");
    return 0;
  }
  const int threads = getenv("KHORO_THREADS") ? atoi(getenv("KHORO_THREADS")) : 1;
  pthread_t others[16];
  for (int i = 1; i < threads; ++i) CHECK(pthread_create(&others[i], NULL, one_thread, NULL) == 0);
  one_thread(NULL);
  for (int i = 1; i < threads; ++i) CHECK(pthread_join(others[i], NULL) == 0);
  CHECK_RESULT(khoroInvalidUsage, khoroCommInitWorld(&none));
  CHECK_WORDS("have joined");
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitWorld(NULL));
  return 0;
}
