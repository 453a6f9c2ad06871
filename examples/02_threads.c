/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of one process: each adds up its share of a series, and every one gets the
 * sum of all. Run it: 02_threads */
#include <khoro/khoro.h>
#include <pthread.h>

#include "check.h"

enum { ranks = 4, terms = 1000000 };

/* quote: begin */
static void* add_up(void* handle) {
  khoroComm_t comm = handle;
  int rank;
  check(khoroCommUserRank(comm, &rank), comm);

  double sum = 0;
  for (int k = rank; k < terms; k += ranks) sum += (k % 2 ? -4.0 : 4.0) / (2 * k + 1);
  check(khoroAllReduce(&sum, &sum, 1, khoroFloat64, khoroSum, comm, NULL), comm); /* in place */
  if (rank == 0) printf("pi is about %.4f\n", sum);
  return NULL;
}

int main(void) {
  khoroComm_t comms[ranks]; /* nobody else need be met: one call makes them all */
  pthread_t threads[ranks];
  check(khoroCommInitAllHost(comms, ranks), NULL);
  for (int r = 0; r < ranks; ++r) pthread_create(&threads[r], NULL, add_up, comms[r]);
  for (int r = 0; r < ranks; ++r) pthread_join(threads[r], NULL);
  for (int r = 0; r < ranks; ++r) check(khoroCommDestroy(comms[r]), NULL);
  return 0;
}
/* quote: end */
