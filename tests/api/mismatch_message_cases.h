/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which sends and receives can fail to meet, with tags and without. */
#ifndef KHORO_TESTS_MISMATCH_MESSAGE_CASES_H
#define KHORO_TESTS_MISMATCH_MESSAGE_CASES_H

#include "mismatch_cases.h"

static inline struct call message(enum kind kind, size_t count, int peer, uint32_t tag) {
  return (struct call){
      .kind = kind, .count = count, .type = khoroFloat32, .peer = peer, .tag = tag};
}

/* The odd rank sends to the next one, with a tag or without, and that receives. */
static inline struct job two_ends(const char* name, enum expectation expectation,
                                  const struct variation* how, struct call sent,
                                  struct call received) {
  const int other = (how->odd + 1) % how->ranks;
  struct job job = job_of(name, expectation, how);
  sent.peer = other;
  received.peer = how->odd;
  job.calls[how->odd] = job.calls[other] = 1;
  job.script[how->odd][0] = sent;
  job.script[other][0] = received;
  spell(job.words[0], &sent, how->ranks);
  spell(job.words[1], &received, how->ranks);
  return job;
}

/* Nothing is wrong but that one rank waits in its only message for another. */
static inline void waits_for(struct job* job, int waits, int for_rank) {
  const struct call* call = &job->script[waits][0];
  job->expectation = timed_out;
  job->deadline_ms = 1000;
  snprintf(job->words[0], sizeof job->words[0], "rank %d", for_rank);
  snprintf(job->words[1], sizeof job->words[1], "%s #1", call->kind == send ? "send" : "recv");
  if (call->tag) snprintf(job->words[2], sizeof job->words[2], "with tag %u", call->tag);
  job->witness = waits;
  spell(job->seen, call, job->ranks);
}

static inline void different_messages(const struct variation* how, emit emit) {
  static const struct {
    size_t sent, received;
    khoroDataType_t type;
  } pairs[] = {{4, 0, khoroFloat32}, {4, 5, khoroFloat32},        {4, 4, khoroInt32},
               {0, 4, khoroFloat32}, {20000, 1000, khoroFloat32}, {1000, 20000, khoroFloat32}};
  for (int tagged = 0; tagged < 2; ++tagged)
    for (int i = 0; i < 6; ++i) {
      struct call sent = message(send, pairs[i].sent, 0, tagged ? UINT32_MAX : 0);
      sent.type = pairs[i].type;
      const struct job job =
          two_ends(tagged ? "a tagged message's ends differ" : "a message's ends differ", reported,
                   how, sent, message(recv, pairs[i].received, 0, sent.tag));
      emit(&job);
    }
}

/* A message that no receive is for is kept, unless it has no tag: then who sends it waits too. */
static inline void different_tags(const struct variation* how, emit emit) {
  static const uint32_t tags[][2] = {{7, 8}, {7, 0}, {0, 7}};
  for (int i = 0; i < 3; ++i)
    for (int large = 0; large < 2; ++large) {
      const size_t count = large ? 20000 : 4;
      struct job job = two_ends("a tag differs", reported, how, message(send, count, 0, tags[i][0]),
                                message(recv, count, 0, tags[i][1]));
      if (tags[i][0]) waits_for(&job, (how->odd + 1) % how->ranks, how->odd);
      emit(&job);
    }
}

static inline void missing_ends(const struct variation* how, emit emit) {
  for (int tagged = 0; tagged < 2; ++tagged)
    for (int receives = 0; receives < 2; ++receives) {
      const uint32_t tag = tagged ? 7 : 0;
      const int other = (how->odd + 1) % how->ranks;
      struct job job = job_of("an end of a message is missing", timed_out, how);
      job.calls[other] = 1;
      job.script[other][0] = message(receives ? recv : send, most_elements, how->odd, tag);
      waits_for(&job, other, how->odd);
      emit(&job);
    }
}

/* Two messages are received in another order than they are sent: the first is kept, if it may. */
static inline void crossed_tags(const struct variation* how, emit emit) {
  for (int kept = 0; kept < 2; ++kept) {
    const struct call first = message(send, 50000, 0, 7);
    struct job job = two_ends("tags are crossed", kept ? succeeds : reported, how, first,
                              message(recv, 10, 0, 8));
    const int other = (how->odd + 1) % how->ranks;
    if (!kept) job.tag_buffer = "0";
    job.calls[how->odd] = job.calls[other] = 2;
    job.script[how->odd][1] = message(send, 10, other, 8);
    job.script[other][1] = message(recv, 50000, how->odd, 7);
    snprintf(job.words[2], sizeof job.words[2], "KHORO_TAG_BUFFER");
    emit(&job);
  }
}

/* Every rank does the same with its neighbour first, and the opposite afterwards. */
static inline void circles(const struct variation* how, emit emit) {
  for (int i = 0; i < 4; ++i) {
    const int send_first = i % 2;
    const uint32_t tag = i < 2 ? 0 : 7;
    struct job job =
        job_of(send_first ? "all send first, too much" : "all receive first", reported, how);
    job.slot_bytes = "4096";
    job.tag_buffer = "0";
    for (int r = 0; r < how->ranks; ++r) {
      const int right = (r + 1) % how->ranks, left = (r + how->ranks - 1) % how->ranks;
      job.calls[r] = 2;
      job.script[r][!send_first] = message(send, 50000, right, tag);
      job.script[r][send_first] = message(recv, 50000, left, tag);
    }
    snprintf(job.words[0], sizeof job.words[0], "cycle");
    spell(job.words[1], &job.script[how->odd][0], how->ranks);
    emit(&job);
  }
}

static inline void messages_across_collectives(const struct variation* how, emit emit) {
  for (int tagged = 0; tagged < 2; ++tagged) {
    struct job job = job_of("a message across a collective", reported, how);
    const int other = (how->odd + 1) % how->ranks;
    for (int r = 0; r < how->ranks; ++r) {
      job.calls[r] = 1;
      job.script[r][0] = collective(barrier, 0);
    }
    job.script[how->odd][0] = message(recv, 4, other, tagged ? 7 : 0);
    snprintf(job.words[0], sizeof job.words[0], "cycle");
    spell(job.words[1], &job.script[how->odd][0], how->ranks);
    snprintf(job.words[2], sizeof job.words[2], "khoroBarrier()");
    emit(&job);
  }
}

#endif
