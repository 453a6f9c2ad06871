/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks of one process: what rank 0 queues stays under way until rank 1 makes its call. */
#ifndef KHORO_TESTS_STREAM_CASES_H
#define KHORO_TESTS_STREAM_CASES_H

#include "check.h"

struct pair {
  khoroComm_t comms[2];
  int32_t in[2], out[2];
};

static inline struct pair make_pair(void) {
  struct pair pair = {.in = {1, 2}};
  OK(khoroCommInitAllHost(pair.comms, 2));
  return pair;
}

static inline void destroy_pair(struct pair* pair) {
  OK(khoroCommDestroy(pair->comms[0]));
  OK(khoroCommDestroy(pair->comms[1]));
}

/* One rank's part in a sum. */
static inline khoroResult_t add(struct pair* pair, int rank, khoroStream_t stream) {
  return khoroAllReduce(&pair->in[rank], &pair->out[rank], 1, khoroInt32, khoroSum,
                        pair->comms[rank], stream);
}

static inline khoroStream_t make_stream(void) {
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  return stream;
}

/* Sums in place over and over: the result tells whether each took the one before. */
static inline void sum_in_place(uint64_t* value, khoroComm_t comm, khoroStream_t stream) {
  OK(khoroAllReduce(value, value, 1, khoroInt64, khoroSum, comm, stream));
}

static inline uint64_t power(int ranks, int exponent) {
  uint64_t value = 1;
  for (int i = 0; i < exponent; ++i) value *= (uint64_t)ranks;
  return value;
}

#endif
