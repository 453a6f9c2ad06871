/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with tags: they meet by tag, whatever the order, within what is kept of them. */
#include "values.h"

#include <malloc.h>

enum { most = 4, long_count = 300000 };
static _Thread_local uint64_t random_state; /* ranks may be threads */
static uint64_t drawn(uint64_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % bound;
}

/* Messages of one rank to another, as both draw them from a seed: what is sent, in that order, and
 * the order of the receives, in which those with one tag follow each other as they were sent. */
enum { drawn_messages = 60 };
struct letter {
  uint32_t tag;
  size_t count;
  int64_t first;
};

static void swap(int* a, int* b) {
  const int kept = *a;
  *a = *b;
  *b = kept;
}

/* Of the plain ones, which are not kept, only so many that wait in slots if `plain_wait`. */
static void draw_letters(struct letter* sent, int* order, uint64_t seed, int plain_wait) {
  static const uint32_t tags[] = {0, 1, 2, 7, 65536, UINT32_MAX};
  int plain = 0;
  random_state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < drawn_messages; ++i) {
    static const uint64_t bounds[] = {1, 9, 500, 30000};
    struct letter letter = {tags[drawn(6)], (size_t)drawn(bounds[drawn(4)]),
                            (int64_t)drawn(1000000)};
    if (plain_wait && letter.tag == 0 && (++plain > 8 || letter.count >= 500)) letter.tag = 3;
    sent[i] = letter;
    order[i] = i;
  }
  for (int i = drawn_messages - 1; i > 0; --i) swap(&order[i], &order[drawn((uint64_t)i + 1)]);
  for (int i = 0; i < drawn_messages; ++i)
    for (int j = i + 1; j < drawn_messages; ++j)
      if (sent[order[i]].tag == sent[order[j]].tag && order[i] > order[j])
        swap(&order[i], &order[j]);
}

static int64_t* content(const struct letter* of) {
  int64_t* data = guarded(of->count * 8);
  for (size_t i = 0; i < of->count; ++i) data[i] = of->first + (int64_t)i;
  return data;
}

static void check_content(int64_t* got, const struct letter* of) {
  for (size_t i = 0; i < of->count; ++i) CHECK(got[i] == of->first + (int64_t)i);
  release(got, of->count * 8);
}

/* Rank 0 sends to all, and each receives in an order of its own. */
static void any_order(khoroComm_t comm, int rank, int ranks) {
  struct letter sent[drawn_messages];
  int order[drawn_messages];
  int32_t first = 0; /* a plain send finds no room before the first receive */
  for (int to = 1; to < ranks && rank == 0; ++to)
    OK(khoroSend(&first, 1, khoroInt32, to, comm, NULL));
  if (rank != 0) OK(khoroRecv(&first, 1, khoroInt32, 0, comm, NULL));
  for (uint64_t round = 0; round < 30; ++round)
    for (int to = 1; to < ranks; ++to) {
      if (rank != 0 && rank != to) continue;
      draw_letters(sent, order, round * 8 + (uint64_t)to, 1);
      for (int i = 0; i < drawn_messages; ++i) {
        const struct letter* letter = &sent[rank == 0 ? i : order[i]];
        int64_t* data = rank == 0 ? content(letter) : guarded(letter->count * 8);
        if (rank == 0)
          OK(khoroSendTag(data, letter->count, khoroInt64, to, letter->tag, comm, NULL));
        else
          OK(khoroRecvTag(data, letter->count, khoroInt64, 0, letter->tag, comm, NULL));
        check_content(data, letter);
      }
    }
  OK(khoroBarrier(comm, NULL));
}

/* Everybody to everybody, itself too, with many tags in one group, long ones among them. */
static void in_groups(khoroComm_t comm, int rank, int ranks) {
  struct letter to[most][drawn_messages], from[most][drawn_messages];
  int order[drawn_messages], unused[drawn_messages];
  int64_t *out[most][drawn_messages], *in[most][drawn_messages];
  khoroStream_t stream = NULL;
  for (uint64_t round = 0; round < 8; ++round) {
    if (round == 4) OK(khoroStreamCreate(&stream));
    OK(khoroGroupStart());
    for (int peer = 0; peer < ranks; ++peer) {
      draw_letters(to[peer], unused, round * 64 + (uint64_t)(rank * 8 + peer), 0);
      for (int i = 0; i < drawn_messages; ++i) {
        const struct letter* letter = &to[peer][i];
        out[peer][i] = content(letter);
        OK(khoroSendTag(out[peer][i], letter->count, khoroInt64, peer, letter->tag, comm, stream));
      }
      draw_letters(from[peer], order, round * 64 + (uint64_t)(peer * 8 + rank), 0);
      for (int i = 0; i < drawn_messages; ++i) {
        const struct letter* letter = &from[peer][order[i]];
        int64_t* buffer = in[peer][order[i]] = guarded(letter->count * 8);
        OK(khoroRecvTag(buffer, letter->count, khoroInt64, peer, letter->tag, comm, stream));
      }
    }
    OK(khoroGroupEnd());
    if (stream) OK(khoroStreamSynchronize(stream));
    for (int peer = 0; peer < ranks; ++peer)
      for (int i = 0; i < drawn_messages; ++i) {
        check_content(out[peer][i], &to[peer][i]);
        check_content(in[peer][i], &from[peer][i]);
      }
  }
  OK(khoroStreamDestroy(stream));
}

/* Each sends something long to the other with a tag before it receives. */
static void both_send_first(khoroComm_t comm, int rank, int ranks) {
  const struct letter letter = {UINT32_MAX, long_count, 7};
  (void)ranks;
  for (int round = 0; round < 5; ++round) {
    int64_t *out = content(&letter), *in = guarded(long_count * 8);
    OK(khoroSendTag(out, long_count, khoroInt64, 1 - rank, UINT32_MAX, comm, NULL));
    OK(khoroRecvTag(in, long_count, khoroInt64, 1 - rank, UINT32_MAX, comm, NULL));
    check_content(out, &letter);
    check_content(in, &letter);
  }
}

/* What is long waits for a rank that waits for something plain. */
static void plain_after_tagged(khoroComm_t comm, int rank, int ranks) {
  /* More than a channel and the system hold of what is on its way. */
  const struct letter letter = {5, 4 << 20, 11}, plain = {0, 100, 3};
  (void)ranks;
  for (int round = 0; round < 5; ++round) {
    if (rank == 0) {
      int64_t *first = content(&letter), *second = content(&plain);
      OK(khoroSendTag(first, letter.count, khoroInt64, 1, 5, comm, NULL));
      OK(khoroSend(second, plain.count, khoroInt64, 1, comm, NULL));
      check_content(first, &letter);
      check_content(second, &plain);
    } else {
      int64_t *first = guarded(letter.count * 8), *second = guarded(plain.count * 8);
      OK(khoroRecv(second, plain.count, khoroInt64, 0, comm, NULL));
      const uint64_t before = statistics_of(comm).keptBytes;
      OK(khoroRecvTag(first, letter.count, khoroInt64, 0, 5, comm, NULL));
      const uint64_t after = statistics_of(comm).keptBytes;
      CHECK(before >= after + letter.count * 8);
      check_content(first, &letter);
      check_content(second, &plain);
    }
    OK(khoroBarrier(comm, NULL)); /* nothing else is kept */
  }
}

/* Tag 0 is the plain call. */
static void tag_0_is_plain(khoroComm_t comm, int rank, int ranks) {
  int32_t out = 5, in = 0;
  (void)ranks;
  if (rank == 0) {
    OK(khoroSendTag(&out, 1, khoroInt32, 1, 0, comm, NULL));
    OK(khoroSend(&out, 1, khoroInt32, 1, comm, NULL));
  } else {
    OK(khoroRecv(&in, 1, khoroInt32, 0, comm, NULL));
    CHECK(in == 5);
    OK(khoroRecvTag(&in, 1, khoroInt32, 0, 0, comm, NULL));
  }
}

static void refusals(khoroComm_t comm, int rank, int ranks) {
  int32_t value = 0;
  CHECK_REFUSED(khoroInvalidArgument, "khoroSendTag(1 x khoroInt32, to rank 2, tag 9): there is no",
                khoroSendTag(&value, 1, khoroInt32, ranks, 9, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "tag 9): the receive buffer is NULL",
                khoroRecvTag(NULL, 1, khoroInt32, 1 - rank, 9, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                khoroRecvTag(&value, SIZE_MAX / 2, khoroInt32, 1 - rank, 9, comm, NULL));
  CHECK_REFUSED(khoroInvalidUsage, "tag 9) by that rank itself would wait for ever",
                khoroSendTag(&value, 1, khoroInt32, rank, 9, comm, NULL));
  OK(khoroGroupStart());
  OK(khoroSendTag(&value, 1, khoroInt32, rank, 9, comm, NULL));
  OK(khoroRecvTag(&value, 1, khoroInt32, rank, 8, comm, NULL));
  CHECK_REFUSED(khoroInvalidUsage, "tag 8) by that rank itself has no other end", khoroGroupEnd());
  OK(khoroGroupStart());
  OK(khoroSendTag(&value, 1, khoroInt32, rank, 9, comm, NULL));
  OK(khoroRecvTag(&value, 2, khoroInt32, rank, 9, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "must name the same count", khoroGroupEnd());
  OK(khoroBarrier(comm, NULL));
}

static void check_told(khoroComm_t comm, khoroResult_t result, const char* const* parts) {
  if (result == khoroSuccess) {
    CHECK(wait_while(khoroSuccess, comm) == khoroMismatch);
    result = khoroBarrier(comm, NULL);
  }
  CHECK(result == khoroMismatch);
  for (; *parts; ++parts) CHECK_WORDS(*parts);
}

/* Not received, and more than is kept: what comes behind it cannot come. */
static void too_much_is_kept(khoroComm_t comm, int rank, int ranks) {
  static const char* const parts[] = {"a cycle",
                                      "tag 7)",
                                      "tag 5)",
                                      "khoroSendTag(40000 x khoroFloat32, to rank 1, tag 5)",
                                      "khoroRecvTag(10 x khoroFloat32, from rank 0, tag 7)",
                                      "KHORO_TAG_BUFFER",
                                      NULL};
  float* buffer = calloc(40000, 4);
  const double start = seconds();
  (void)ranks;
  khoroResult_t result = khoroSuccess;
  if (rank == 0) {
    result = khoroSendTag(buffer, 40000, khoroFloat32, 1, 5, comm, NULL);
    if (!result) result = khoroSendTag(buffer, 10, khoroFloat32, 1, 7, comm, NULL);
  } else {
    result = khoroRecvTag(buffer, 10, khoroFloat32, 0, 7, comm, NULL);
  }
  check_told(comm, result, parts);
  CHECK(seconds() - start < soon);
  free(buffer);
}

/* The same where the sender is stuck and the receiver waits for something plain. */
static void too_much_before_a_plain_one(khoroComm_t comm, int rank, int ranks) {
  static const char* const parts[] = {
      "a cycle", "khoroSendTag(900000 x khoroFloat32, to rank 1, tag 5)",
      "khoroRecv(10 x khoroFloat32, from rank 0)", "KHORO_TAG_BUFFER", NULL};
  float* buffer = calloc(900000, 4);
  const double start = seconds();
  (void)ranks;
  check_told(comm,
             rank == 0 ? khoroSendTag(buffer, 900000, khoroFloat32, 1, 5, comm, NULL)
                       : khoroRecv(buffer, 10, khoroFloat32, 0, comm, NULL),
             parts);
  CHECK(seconds() - start < soon);
  free(buffer);
}

/* Plain messages are not kept at all. */
static void plain_send_before_a_tagged_one(khoroComm_t comm, int rank, int ranks) {
  static const char* const parts[] = {"a cycle", "khoroSend(900000 x khoroFloat32, to rank 1)",
                                      "khoroRecvTag(10 x khoroFloat32, from rank 0, tag 7)", NULL};
  float* buffer = calloc(900000, 4);
  (void)ranks;
  check_told(comm,
             rank == 0 ? khoroSend(buffer, 900000, khoroFloat32, 1, comm, NULL)
                       : khoroRecvTag(buffer, 10, khoroFloat32, 0, 7, comm, NULL),
             parts);
  free(buffer);
}

/* The message is there before its receive, or the receive before the message. */
static int threads, receiver_is_late;
static size_t sent_count, received_count;
static khoroDataType_t received_type;

static void ends_differ(khoroComm_t comm, int rank, int ranks) {
  float* buffer = calloc(30000, 8);
  char sent[99], received[99];
  const char* const parts[] = {"message #2 with tag 7 from rank 0 to rank 1 is not the same", sent,
                               received, NULL};
  snprintf(sent, sizeof sent, "rank 0 called khoroSendTag(%zu x khoroFloat32, to rank 1, tag 7)",
           sent_count);
  snprintf(received, sizeof received, "rank 1 called khoroRecvTag(%zu x %s, from rank 0, tag 7)",
           received_count, received_type == khoroFloat32 ? "khoroFloat32" : "khoroInt32");
  (void)ranks;
  khoroResult_t result = khoroSuccess;
  if (rank == 0) {
    OK(khoroSendTag(buffer, 10, khoroFloat32, 1, 7, comm, NULL));
    OK(khoroSendTag(buffer, 10, khoroFloat32, 1, 8, comm, NULL));
    if (!receiver_is_late) sleep_ms(20);
    result = khoroSendTag(buffer, sent_count, khoroFloat32, 1, 7, comm, NULL);
    if (!result) result = khoroSendTag(buffer, 1, khoroFloat32, 1, 9, comm, NULL);
  } else {
    OK(khoroRecvTag(buffer, 10, khoroFloat32, 0, 8, comm, NULL));
    OK(khoroRecvTag(buffer, 10, khoroFloat32, 0, 7, comm, NULL));
    if (receiver_is_late) OK(khoroRecvTag(buffer, 1, khoroFloat32, 0, 9, comm, NULL));
    result = khoroRecvTag(buffer, received_count, received_type, 0, 7, comm, NULL);
  }
  check_told(comm, result, parts);
  free(buffer);
}

static void play_ends_that_differ(void) {
  static const size_t counts[][2] = {{4, 5}, {5, 4}, {0, 1}, {1, 0}, {30000, 29999}, {6, 6}};
  for (receiver_is_late = 0; receiver_is_late < 2; ++receiver_is_late)
    for (int i = 0; i < 6; ++i) {
      sent_count = counts[i][0];
      received_count = counts[i][1];
      received_type = sent_count == received_count ? khoroInt32 : khoroFloat32;
      /* By reference it would not be sent before it is received. */
      if (threads && (receiver_is_late == 0 || sent_count < 1000)) run_threads(2, ends_differ);
      if (!threads) run_processes(2, ends_differ);
    }
}

static struct meeting_place* place;

static void* die_soon(void* unused) {
  sleep_ms(10);
  kill(getpid(), SIGKILL);
  return unused;
}

/* In the middle of a message that rank 0 keeps. */
static void sender_dies(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  set_flag(place, rank);
  if (rank == 1) {
    const size_t count = (size_t)64 << 20;
    pthread_t killer;
    float* data = calloc(count, 4);
    CHECK(data && pthread_create(&killer, NULL, die_soon, NULL) == 0);
    OK(khoroSendTag(data, count, khoroFloat32, 0, 3, comm, NULL));
    OK(khoroBarrier(comm, NULL));
  }
  float value = 0;
  if (rank == 0) {
    CHECK_RESULT(khoroPeerDied, khoroRecvTag(&value, 1, khoroFloat32, 1, 4, comm, NULL));
    CHECK_WORDS("rank 1 (pid ");
    CHECK_WORDS(" during ");
  } else {
    CHECK_RESULT(khoroPeerDied, khoroBarrier(comm, NULL));
  }
}

/* So many tags leave nothing behind on the heap but what is bounded. */
static void many_tags(khoroComm_t comm, int rank, int ranks) {
  enum { tags = 10000 };
  struct mallinfo2 before = {0};
  (void)ranks;
  for (int round = 0; round < 6; ++round) {
    if (round == 1) before = mallinfo2();
    for (uint32_t i = 0; i < tags; ++i) {
      /* By tens, backwards. */
      const uint32_t tag = (uint32_t)round * tags + i / 10 * 10 + (rank == 0 ? i % 10 : 9 - i % 10);
      int64_t value[20] = {tag};
      if (rank == 0) {
        OK(khoroSendTag(value, 20, khoroInt64, 1, tag + 1, comm, NULL));
      } else {
        value[0] = -1;
        OK(khoroRecvTag(value, 20, khoroInt64, 0, tag + 1, comm, NULL));
        CHECK(value[0] == tag);
      }
    }
  }
  OK(khoroBarrier(comm, NULL));
  const struct mallinfo2 after = mallinfo2();
  if (after.uordblks > before.uordblks + 64 * 1024) {
    fprintf(stderr, "rank %d: %zu bytes more than before\n", rank,
            after.uordblks - before.uordblks);
    abort();
  }
}

static void play(int ranks, rank_body body) {
  if (threads)
    run_threads(ranks, body);
  else
    run_processes(ranks, body);
}

/* First as processes: ranks must not be forked from a process that has used Khoro. */
int main(void) {
  place = make_meeting_place();
  setenv("KHORO_TAG_BUFFER", "1G", 1);
  run_and_kill_rank_1(place, 3, sender_dies, 100);
  unsetenv("KHORO_TAG_BUFFER");
  for (threads = 0; threads < 2; ++threads) {
    for (int ranks = 1; ranks <= most; ++ranks) play(ranks, in_groups);
    for (int ranks = 2; ranks <= most; ++ranks) play(ranks, any_order);
    play(2, both_send_first);
    play(2, plain_after_tagged);
    play(2, tag_0_is_plain);
    play(2, refusals);
    play(2, plain_send_before_a_tagged_one);
    play_ends_that_differ();
    if (!threads) play(2, many_tags);
    setenv("KHORO_TAG_BUFFER", "100K", 1);
    play(2, too_much_is_kept);
    play(2, too_much_before_a_plain_one);
    setenv("KHORO_TAG_BUFFER", "0", 1);
    play(2, too_much_is_kept);
    for (int ranks = 1; ranks <= most; ++ranks) play(ranks, in_groups);
    unsetenv("KHORO_TAG_BUFFER");
  }
  return 0;
}
