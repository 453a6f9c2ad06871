/* SPDX-License-Identifier: Apache-2.0 */
/* What khoroCommQuery counts: calls, memory that grows with use and is counted where it belongs,
 * and bytes that went to other ranks; asked by any thread, also while a call is under way. */
#include "check.h"

static khoroStatistics_t ask(khoroComm_t comm) {
  const khoroStatistics_t statistics = statistics_of(comm);
  const char* const forced = getenv("KHORO_TRANSPORT");
  CHECK(strcmp(statistics.transports, forced ? forced : "shm") == 0);
  return statistics;
}

static void counts(khoroComm_t comm, int rank, int ranks) {
  const size_t count = 1 << 20;
  char* data = calloc(count, 8);
  int64_t one = 1, sum = 0;
  const khoroStatistics_t fresh = ask(comm);
  CHECK(fresh.collectives == 0 && fresh.bytesSent == 0);
  CHECK(fresh.bytesHeld > 0 && fresh.bytesHeld < 1 << 20); /* nothing is made before it is used */

  for (int i = 0; i < 10; ++i) OK(khoroAllReduce(&one, &sum, 1, khoroInt64, khoroSum, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "buffer is NULL",
                khoroAllReduce(NULL, NULL, 1, khoroInt64, khoroSum, comm, NULL));
  OK(khoroAllReduce(NULL, NULL, 0, khoroInt64, khoroSum, comm, NULL));
  const khoroStatistics_t small = ask(comm);
  CHECK(small.collectives == 11); /* refused calls take no number, empty ones do */
  CHECK(small.bytesSent >= 10 * 8 && small.bytesSent < 1 << 20);
  CHECK(small.bytesHeld >= fresh.bytesHeld);

  if (rank == 0) OK(khoroSend(data, count, khoroInt64, 1, comm, NULL));
  if (rank == 1) OK(khoroRecv(data, count, khoroInt64, 0, comm, NULL));
  const khoroStatistics_t sent = ask(comm);
  CHECK(sent.collectives == 11);
  if (rank == 0) CHECK(sent.bytesSent >= small.bytesSent + 8 * count);
  if (rank == 0) CHECK(sent.bytesSent < small.bytesSent + 9 * count); /* each byte once */
  /* Slots lie at the receiver, and they are fewer than the message is long. */
  const int uses_slots = strcmp(sent.transports, "shm") == 0; /* sockets are read in place */
  if (rank == 1 && uses_slots) CHECK(sent.bytesHeld >= small.bytesHeld + 65536);
  if (rank == 1) CHECK(sent.bytesHeld < small.bytesHeld + 8 * count);
  if (rank == 1) CHECK(sent.bytesSent < small.bytesSent + count);
  (void)ranks;
  free(data);
}

static volatile int asking;

static void* ask_again_and_again(void* comm) {
  khoroStatistics_t last = ask(comm);
  while (__atomic_load_n(&asking, __ATOMIC_ACQUIRE)) {
    const khoroStatistics_t now = ask(comm);
    CHECK(now.collectives >= last.collectives && now.bytesSent >= last.bytesSent &&
          now.bytesHeld >= last.bytesHeld);
    last = now;
    sleep_ms(1);
  }
  return NULL;
}

static void asked_during_calls(khoroComm_t comm, int rank, int ranks) {
  pthread_t thread;
  float* data = calloc(1 << 18, 4);
  (void)rank, (void)ranks;
  __atomic_store_n(&asking, 1, __ATOMIC_RELEASE);
  CHECK(pthread_create(&thread, NULL, ask_again_and_again, comm) == 0);
  for (size_t count = 1; count <= 1 << 18; count *= 2)
    OK(khoroAllReduce(data, data, count, khoroFloat32, khoroMax, comm, NULL));
  __atomic_store_n(&asking, 0, __ATOMIC_RELEASE);
  CHECK(pthread_join(thread, NULL) == 0);
  free(data);
}

static void bad_arguments_are_refused(khoroComm_t comm, int rank, int ranks) {
  khoroStatistics_t good = KHORO_STATISTICS_INITIALIZER, bad = {0};
  const size_t older_sizes[] = {offsetof(khoroStatistics_t, stripes),
                                offsetof(khoroStatistics_t, recordBytes),
                                offsetof(khoroStatistics_t, programBytes)};
  (void)rank, (void)ranks;
  CHECK_REFUSED(khoroInvalidArgument, "statistics is NULL", khoroCommQuery(comm, NULL));
  for (size_t i = 0; i < sizeof older_sizes / sizeof *older_sizes; ++i) {
    khoroStatistics_t older;
    memset(&older, 7, sizeof older);
    older.size = older_sizes[i];
    OK(khoroCommQuery(comm, &older));
    CHECK(older.bytesSent == 0);
    for (size_t k = older.size; k < sizeof older; ++k) CHECK(((unsigned char*)&older)[k] == 7);
  }
  CHECK_REFUSED(khoroInvalidArgument, "the size of statistics is 0", khoroCommQuery(comm, &bad));
  CHECK_REFUSED(khoroInvalidArgument, "the communicator is NULL", khoroCommQuery(NULL, &good));
}

int main(void) {
  run_processes(2, counts); /* processes first: this one has not used Khoro yet */
  run_processes(3, asked_during_calls);
  run_processes(1, bad_arguments_are_refused);
  return 0;
}
