/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which the ranks of a job can fail to make the same calls, as jobs to run. */
#ifndef KHORO_TESTS_MISMATCH_CASES_H
#define KHORO_TESTS_MISMATCH_CASES_H

#include "mismatch_calls.h"

enum expectation {
  reported,  /* khoroMismatch on every rank, soon */
  timed_out, /* nothing to see but that a rank does not come: khoroTimeout on every rank */
  warned,    /* the same, and soon a line in the log that says more */
  straggler, /* the same, and a line in the log after ten seconds */
  succeeds   /* nothing is wrong: nothing is reported */
};

enum { most_calls = 3, most_words = 4, most_elements = 512000 };

struct job {
  const char* name; /* of its row in the table */
  enum expectation expectation;
  int ranks, odd, threads, communicators, warm_calls, deadline_ms;
  const char* algorithm;               /* forced; NULL: none */
  const char *slot_bytes, *tag_buffer; /* NULL: the default */
  int grouped, late;
  int calls[most_ranks];
  struct call script[most_ranks][most_calls];
  char words[most_words][120]; /* that a report must hold */
  int witness;                 /* a rank whose report must hold more */
  char seen[120];
};

static inline struct call collective(enum kind kind, size_t count) {
  return (struct call){.kind = kind, .count = count, .type = khoroFloat32, .op = khoroSum};
}

/* What is varied about a job beside its calls. */
struct variation {
  int ranks, odd, threads;
  const char* algorithm;
};

typedef void (*emit)(const struct job* job);

static inline struct job job_of(const char* name, enum expectation expectation,
                                const struct variation* how) {
  return (struct job){.name = name,
                      .expectation = expectation,
                      .ranks = how->ranks,
                      .odd = how->odd,
                      .threads = how->threads,
                      .communicators = 1,
                      .warm_calls = how->odd % 2 ? 3 : 0,
                      .algorithm = how->algorithm};
}

/* All but one rank make one call, the odd one another. */
static inline struct job one_differs(const char* name, const struct variation* how,
                                     struct call call, struct call other) {
  struct job job = job_of(name, reported, how);
  for (int r = 0; r < how->ranks; ++r) {
    job.calls[r] = 1;
    job.script[r][0] = r == how->odd ? other : call;
  }
  char spelled[120];
  spell(spelled, &other, how->ranks);
  snprintf(job.words[0], sizeof job.words[0], "rank %d called %.90s", how->odd, spelled);
  spell(job.words[1], &call, how->ranks);
  return job;
}

static inline void different_collectives(const struct variation* how, emit emit) {
  for (enum kind a = 0; a < collectives; ++a)
    for (enum kind b = 0; b < collectives; ++b) {
      if (a == b) continue;
      const struct job job =
          one_differs("the collective differs", how, collective(a, 1000), collective(b, 1000));
      emit(&job);
    }
}

static inline void different_counts(const struct variation* how, emit emit) {
  /* 4,000 and 80,000 bytes are done by different algorithms, where there are several. */
  static const size_t counts[][2] = {
      {1000, 999}, {1000, 0}, {0, 1000}, {1000, 20000}, {most_elements, most_elements / 2}};
  for (enum kind kind = 0; kind < barrier; ++kind)
    for (int i = 0; i < 5 && !has_local_blocks(kind); ++i) {
      const char* name = counts[i][0] && counts[i][1] ? "the count differs" : "a count is 0";
      const struct job job =
          one_differs(name, how, collective(kind, counts[i][0]), collective(kind, counts[i][1]));
      emit(&job);
    }
}

static inline void different_types(const struct variation* how, emit emit) {
  for (enum kind kind = 0; kind < barrier; ++kind)
    for (int wide = 0; wide < 2; ++wide) {
      struct call other = collective(kind, 1000);
      other.type = wide ? khoroFloat64 : khoroInt32;
      const struct job job =
          one_differs("the data type differs", how, collective(kind, 1000), other);
      emit(&job);
    }
}

static inline void different_ops(const struct variation* how, emit emit) {
  for (enum kind kind = 0; kind < barrier; ++kind)
    for (int i = 0; i < 2 && reduces(kind); ++i) {
      struct call other = collective(kind, 1000);
      other.op = i ? khoroMax : khoroAvg;
      const struct job job =
          one_differs("the reduction differs", how, collective(kind, 1000), other);
      emit(&job);
    }
}

static inline void different_roots(const struct variation* how, emit emit) {
  for (enum kind kind = 0; kind < collectives; ++kind)
    for (int large = 0; large < 2; ++large) {
      if (!root_gives(kind) && !root_gets(kind)) continue;
      struct call call = collective(kind, large ? 20000 : 8), other = call;
      call.peer = how->odd == 0 ? how->ranks - 1 : 0;
      other.peer = how->odd;
      struct job job = one_differs("the root differs", how, call, other);
      emit(&job);
    }
  struct job job = job_of("every rank is root", reported, how);
  for (int r = 0; r < how->ranks; ++r) {
    job.calls[r] = 1;
    job.script[r][0] = collective(broadcast, 8);
    job.script[r][0].peer = r;
  }
  if (how->ranks == 2)
    for (int r = 0; r < 2; ++r)
      snprintf(job.words[r], sizeof job.words[r],
               "rank %d called khoroBroadcast(8 x khoroFloat32, root %d)", r, r);
  emit(&job);
}

static inline struct job groups(const char* name, enum expectation expectation,
                                const struct variation* how, const struct call calls[2],
                                const struct call* odd_calls, int odd_count) {
  struct job job = job_of(name, expectation, how);
  job.grouped = 1;
  for (int r = 0; r < how->ranks; ++r) {
    job.calls[r] = r == how->odd ? odd_count : 2;
    for (int i = 0; i < job.calls[r]; ++i)
      job.script[r][i] = r == how->odd ? odd_calls[i] : calls[i];
  }
  return job;
}

static inline void different_groups(const struct variation* how, emit emit) {
  const struct call a = collective(allreduce, 1000), b = collective(allgather, 500),
                    c = collective(reducescatter, 10);
  const struct call calls[2] = {a, b}, swapped[2] = {b, a}, third[2] = {a, c}, more[3] = {a, b, c};
  struct job job = groups("a group has other contents", reported, how, calls, swapped, 2);
  snprintf(job.words[0], sizeof job.words[0], "rank %d called khoroAllGather(500", how->odd);
  emit(&job);
  job = groups("a group has other contents", reported, how, calls, third, 2);
  snprintf(job.words[0], sizeof job.words[0], "rank %d called khoroReduceScatter(10", how->odd);
  emit(&job);
  job = groups("a group lacks a call", timed_out, how, calls, calls, 1);
  job.deadline_ms = 1000;
  snprintf(job.words[0], sizeof job.words[0], "rank %d", how->odd);
  snprintf(job.words[2], sizeof job.words[2], "did not call it");
  emit(&job);
  job = groups("a group has one call more", timed_out, how, calls, more, 3);
  job.deadline_ms = 1000;
  snprintf(job.words[0], sizeof job.words[0], "did not call it");
  emit(&job);
}

static inline void crossed_communicators(const struct variation* how, emit emit) {
  struct job job = job_of("communicators are crossed", warned, how);
  job.communicators = 2;
  job.deadline_ms = 3000;
  job.warm_calls = 0;
  for (int r = 0; r < how->ranks; ++r) {
    job.calls[r] = 2;
    for (int i = 0; i < 2; ++i) {
      job.script[r][i] = collective(allreduce, 1000);
      job.script[r][i].comm = r == how->odd ? 1 - i : i;
    }
  }
  snprintf(job.words[0], sizeof job.words[0], "of communicator 1 for");
  snprintf(job.words[1], sizeof job.words[1], "of communicator 2 for");
  emit(&job);
}

/* Somebody waits for that rank. Who gives little to others, or to one, needs nobody; the root is
 * rank 0. */
static inline int missed(enum kind kind, int odd) {
  return !(root_gives(kind) && odd != 0) && !(root_gets(kind) && odd == 0);
}

static inline void missing_calls(const struct variation* how, emit emit) {
  for (enum kind kind = 0; kind < collectives; ++kind) {
    if (!missed(kind, how->odd)) continue;
    struct job job =
        one_differs("a call is missing", how, collective(kind, 1000), collective(kind, 1000));
    job.expectation = timed_out;
    job.deadline_ms = 1000;
    job.calls[how->odd] = 0;
    snprintf(job.words[0], sizeof job.words[0], "rank %d", how->odd);
    snprintf(job.words[2], sizeof job.words[2], "did not call it");
    emit(&job);
  }
}

static inline void stragglers(const struct variation* how, emit emit) {
  struct job job =
      one_differs("a rank is late by 10 s", how, collective(barrier, 0), collective(barrier, 0));
  job.expectation = straggler;
  job.deadline_ms = 12000;
  job.calls[how->odd] = 0;
  snprintf(job.words[0], sizeof job.words[0], "waits for rank %d, not yet called there", how->odd);
  emit(&job);
}

static inline void refused_calls(const struct variation* how, emit emit) {
  for (enum kind kind = 0; kind < barrier; ++kind) {
    if (!missed(kind, how->odd)) continue;
    struct job job =
        one_differs("a call is refused", how, collective(kind, 1000), collective(kind, 1000));
    job.expectation = warned;
    job.deadline_ms = 2500;
    job.script[how->odd][0].no_buffers = 1;
    snprintf(job.words[0], sizeof job.words[0], "waits for rank %d", how->odd);
    snprintf(job.words[2], sizeof job.words[2], "refused for its arguments");
    emit(&job);
  }
}

/* Right, but so late that everything that looks for faults looks. */
static inline void late_but_right(const struct variation* how, emit emit) {
  struct job job = job_of("late, but right", succeeds, how);
  job.late = 1;
  emit(&job);
}

#endif
