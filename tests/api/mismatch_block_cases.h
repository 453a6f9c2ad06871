/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which ranks can differ in the blocks of unequal length that they name. */
#ifndef KHORO_TESTS_MISMATCH_BLOCK_CASES_H
#define KHORO_TESTS_MISMATCH_BLOCK_CASES_H

#include "mismatch_cases.h"

/* Lengths that all ranks know: one rank has others. */
static inline void different_known_blocks(const struct variation* how, emit emit) {
  static const long more[][2] = {{1, 0}, {-1000, 0}, {20000, 0}, {7, -7}}; /* of two neighbours */
  const int next = (how->odd + 1) % how->ranks;
  for (enum kind kind = allgatherv; !has_local_blocks(kind); ++kind)
    for (int i = 0; i < 4; ++i)
      for (int own = 0; own < 2; ++own) {
        const struct call call = collective(kind, 1000);
        struct call other = call;
        other.more[own ? how->odd : next] = more[i][0];
        other.more[own ? next : how->odd] = more[i][1];
        const struct job job = one_differs("known blocks differ", how, call, other);
        emit(&job);
      }
}

static const char* const block_names[] = {"allgatherv", "reducescatterv", "gatherv", "scatterv",
                                          "alltoallv"};

/* Of a block that only its ends know, the odd one, which gives or gets it, has another length. Who
 * gets it sees that, and every rank hears of it. */
static inline struct job one_block_differs(const struct variation* how, struct call call,
                                           int odd_gets, long more) {
  const int end = (how->odd + 1) % how->ranks;
  const int gives = odd_gets ? end : how->odd, gets = odd_gets ? how->odd : end;
  struct job job = job_of("a local block differs", reported, how);
  call.peer = root_gives(call.kind) ? gives : gets;
  for (int r = 0; r < how->ranks; ++r) {
    job.calls[r] = 1;
    job.script[r][0] = call;
  }
  struct call* odd = &job.script[how->odd][0];
  if (call.kind != alltoallv)
    odd->more[call.peer == how->odd ? end : how->odd] = more;
  else if (odd_gets)
    odd->gets_more[end] = more;
  else
    odd->more[end] = more;
  snprintf(job.words[0], sizeof job.words[0], "%s #%d", block_names[call.kind - allgatherv],
           job.warm_calls + 1);
  job.witness = gets;
  snprintf(job.seen, sizeof job.seen, "rank %d expects %zu elements from rank %d", gets,
           call.count + (size_t)(odd_gets ? more : 0), gives);
  return job;
}

static inline void different_local_blocks(const struct variation* how, emit emit) {
  static const size_t counts[][2] = {{1000, 999}, {1000, 0}, {0, 1000}, {1000, 20000}, {20000, 1}};
  for (enum kind kind = gatherv; has_local_blocks(kind); ++kind)
    for (int i = 0; i < 5; ++i)
      for (int odd_gets = 0; odd_gets < 2; ++odd_gets) {
        const long more = (long)counts[i][1] - (long)counts[i][0];
        const struct job job =
            one_block_differs(how, collective(kind, counts[i][0]), odd_gets, more);
        emit(&job);
      }
}

/* Where a rank lays its blocks is its own affair. */
static inline void different_displacements(const struct variation* how, emit emit) {
  for (enum kind kind = allgatherv; has_blocks(kind); ++kind) {
    if (kind == reducescatterv) continue; /* it has none */
    struct call other = collective(kind, 1000);
    other.gap = 3;
    struct job job = one_differs("displacements differ", how, collective(kind, 1000), other);
    job.expectation = succeeds;
    emit(&job);
  }
}

static inline void plain_forms(const struct variation* how, emit emit) {
  static const size_t counts[] = {1000, 20000, 0};
  for (enum kind kind = allgatherv; has_blocks(kind); ++kind)
    for (int i = 0; i < 3; ++i)
      for (int odd_is_plain = 0; odd_is_plain < 2; ++odd_is_plain) {
        const struct call call = collective(kind, counts[i]);
        const struct call plain = collective(plain_form(kind), counts[i]);
        const struct job job =
            one_differs("a v-call meets its plain form", how, odd_is_plain ? call : plain,
                        odd_is_plain ? plain : call);
        emit(&job);
      }
}

#endif
