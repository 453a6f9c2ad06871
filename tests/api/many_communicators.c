/* SPDX-License-Identifier: Apache-2.0 */
/* Many communicators at once, each driven by a thread of its own in every process; the threads
 * start in another order on every rank, so that every process finds most of its peers late. */
#include "check.h"

enum { ranks = 4, communicators = 64, calls = 200 };

/* Where the ranks of communicator i meet. */
static struct meeting_place* places[communicators];

struct driver {
  khoroComm_t comm;
  int rank, number;
};

static void* drive(void* argument) {
  const struct driver* self = argument;
  for (int call = 0; call < calls; ++call) {
    const size_t count = (size_t)(1 + (call + self->number) % 5);
    int32_t in[5], out[5];
    for (size_t i = 0; i < count; ++i) in[i] = self->number * 1000 + call + self->rank + (int)i;
    OK(khoroAllReduce(in, out, count, khoroInt32, khoroSum, self->comm, NULL));
    for (size_t i = 0; i < count; ++i)
      CHECK(out[i] == ranks * (self->number * 1000 + call + (int)i) + ranks * (ranks - 1) / 2);
  }
  return NULL;
}

static void one_process(int rank) {
  static struct driver drivers[communicators];
  pthread_t threads[communicators];
  int order[communicators];
  unsigned seed = (unsigned)rank + 1;
  for (int i = 0; i < communicators; ++i) {
    drivers[i] = (struct driver){join_at(places[i], ranks, rank), rank, i};
    order[i] = i;
  }
  for (int i = communicators - 1; i > 0; --i) {
    const int other = rand_r(&seed) % (i + 1), number = order[i];
    order[i] = order[other];
    order[other] = number;
  }
  for (int i = 0; i < communicators; ++i)
    CHECK(pthread_create(&threads[i], NULL, drive, &drivers[order[i]]) == 0);
  for (int i = 0; i < communicators; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < communicators; ++i) OK(khoroCommDestroy(drivers[order[i]].comm));
  exit(0);
}

int main(void) {
  pid_t children[ranks];
  for (int i = 0; i < communicators; ++i) places[i] = make_meeting_place();
  for (int rank = 0; rank < ranks; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] == 0) one_process(rank);
  }
  for (int rank = 0; rank < ranks; ++rank) check_exit(children[rank]);
  return 0;
}
