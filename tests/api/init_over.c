/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that find each other through an exchange of the caller's: as processes, as threads and as
 * both; and what they say when that exchange fails, is slow, or does not do what it should. */
#include "check.h"

enum { most_ranks = 8, most_bytes = 1024 };

enum fault { none, fails, fails_unheard_of, swaps, is_slow };

/* Memory that all ranks see, in which each writes what it gives. */
struct board {
  int ranks;
  enum fault fault;
  volatile int given[16][most_ranks]; /* by round: 1 given, 2 gone */
  char bytes[16][most_ranks][most_bytes];
};

struct exchange {
  struct board* board;
  int rank, round;
  pthread_t thread;
};

/* Waits until all have given, and says so if one has gone. */
static khoroResult_t gather(void* context, const void* mine, void* all, size_t bytes) {
  struct exchange* self = context;
  struct board* board = self->board;
  const int round = self->round++;
  CHECK(bytes > 0 && bytes <= most_bytes && bytes % 8 == 0);
  self->thread = pthread_self();
  const int faulty = self->rank == 1 && round == 0;
  if (faulty && board->fault == is_slow) sleep_ms(4000);
  memcpy(board->bytes[round][self->rank], mine, bytes);
  const int fails_now = faulty && (board->fault == fails || board->fault == fails_unheard_of);
  __atomic_store_n(&board->given[round][self->rank], fails_now ? 2 : 1, __ATOMIC_RELEASE);
  if (fails_now) return board->fault == fails ? khoroSystemError : (khoroResult_t)77;
  const double end = seconds() + 60;
  for (int r = 0; r < board->ranks; ++r) {
    int given = 0;
    while ((given = __atomic_load_n(&board->given[round][r], __ATOMIC_ACQUIRE)) == 0 &&
           seconds() < end)
      sleep_ms(1);
    if (given != 1) return khoroRemoteError;
  }
  for (int r = 0; r < board->ranks; ++r) {
    const int from = board->fault == swaps && r < 2 ? 1 - r : r;
    memcpy((char*)all + (size_t)r * bytes, board->bytes[round][from], bytes);
  }
  return khoroSuccess;
}

static struct board* board;
static void (*body)(struct exchange* self);

static void run_rank(khoroComm_t none, int rank, int ranks) {
  struct exchange self = {.board = board, .rank = rank};
  (void)none, (void)ranks;
  body(&self);
}

/* `processes` processes of `threads` threads. */
static void run(int processes, int threads, enum fault fault, void (*played)(struct exchange*)) {
  board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(board != MAP_FAILED);
  board->ranks = processes * threads;
  board->fault = fault;
  body = played;
  run_joiners(processes, threads, run_rank);
  munmap(board, sizeof *board);
}

static khoroResult_t join(khoroComm_t* comm, struct exchange* self, const khoroConfig_t* config) {
  *comm = NULL;
  return khoroCommInitOver(comm, self->board->ranks, self->rank, gather, self, config);
}

static void works(khoroComm_t comm, int rank, int ranks) {
  int got = -1;
  int64_t one = 1 << rank, all = 0;
  OK(khoroCommUserRank(comm, &got));
  CHECK(got == rank);
  OK(khoroAllReduce(&one, &all, 1, khoroInt64, khoroSum, comm, NULL));
  CHECK(all == (1 << ranks) - 1);
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
}

static void all_join_twice(struct exchange* self) {
  for (int i = 0; i < 2; ++i) {
    khoroComm_t comm;
    OK(join(&comm, self, NULL));
    works(comm, self->rank, self->board->ranks);
  }
}

static void its_error_is_returned(struct exchange* self) {
  khoroComm_t comm;
  const khoroResult_t result = join(&comm, self, NULL);
  CHECK(!comm);
  if (self->rank == 1 && self->board->fault == fails_unheard_of) {
    CHECK(result == khoroInvalidUsage);
    CHECK_WORDS("returned 77");
  } else {
    CHECK(result == (self->rank == 1 ? khoroSystemError : khoroRemoteError));
  }
  char rank[16];
  snprintf(rank, sizeof rank, "on rank %d", self->rank);
  CHECK_WORDS("khoroCommInitOver");
  CHECK_WORDS(rank);
}

static void wrong_order_is_found(struct exchange* self) {
  khoroComm_t comm;
  CHECK_RESULT(khoroInvalidArgument, join(&comm, self, NULL));
  CHECK_WORDS("put what rank 1 gave in the place of rank 0");
}

/* Four seconds in the exchange count nothing against the three that rank 0 has for the meeting. */
static void its_time_is_its_own(struct exchange* self) {
  khoroComm_t comm;
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = "KHORO_INIT_DEADLINE=50s";
  if (self->rank == 0) config.settings = "KHORO_INIT_DEADLINE=3s";
  OK(join(&comm, self, &config));
  works(comm, self->rank, self->board->ranks);
}

static void numbers_of_ranks_differ(struct exchange* self) {
  khoroComm_t comm = NULL;
  const int ranks = self->rank == 1 ? self->board->ranks + 1 : self->board->ranks;
  CHECK_RESULT(khoroInvalidArgument,
               khoroCommInitOver(&comm, ranks, self->rank, gather, self, NULL));
  CHECK_WORDS(self->rank == 1
                  ? "rank 0 was told that there are 3 ranks, this one that there are 4"
                  : "rank 1 was told that there are 4 ranks, this one that there are 3");
  CHECK(!comm);
}

static void one_cannot_prepare(struct exchange* self) {
  khoroComm_t comm;
  if (self->rank == 2) setenv("KHORO_DEADLINE", "soon", 1);
  const double start = seconds();
  const khoroResult_t result = join(&comm, self, NULL);
  CHECK(seconds() - start < 20 && !comm);
  CHECK(result == (self->rank == 2 ? khoroInvalidArgument : khoroRemoteError));
  if (self->rank != 2) CHECK_WORDS("rank 2 failed");
  CHECK_WORDS("KHORO_DEADLINE is 'soon'");
}

static void begun_and_waited_for(struct exchange* self) {
  khoroComm_t comm;
  const khoroConfig_t config = nonblocking();
  CHECK_RESULT(khoroInProgress, join(&comm, self, &config));
  CHECK(pthread_equal(self->thread, pthread_self())); /* the caller's function, its thread */
  CHECK(wait_while(khoroInProgress, comm) == khoroSuccess);
  works(comm, self->rank, self->board->ranks);
}

/* Ranks of one thread, each with an exchange, which wait for each other. */
static void in_a_group(struct exchange* self) {
  khoroComm_t comms[3] = {NULL, NULL, NULL};
  struct exchange each[3];
  self->board->ranks = 3;
  OK(khoroGroupStart());
  for (int r = 0; r < 3; ++r) {
    each[r] = (struct exchange){.board = self->board, .rank = r};
    OK(khoroCommInitOver(&comms[r], 3, r, gather, &each[r], NULL));
  }
  OK(khoroGroupEnd());
  OK(khoroGroupStart());
  for (int r = 0; r < 3; ++r) OK(khoroBarrier(comms[r], NULL));
  OK(khoroGroupEnd());
  for (int r = 0; r < 3; ++r) OK(khoroCommDestroy(comms[r]));
}

static void bad_arguments_are_refused(struct exchange* self) {
  khoroComm_t comm = NULL;
  const khoroResult_t bad = khoroInvalidArgument;
  khoroConfig_t config = {0};
  CHECK_REFUSED(bad, "comm is NULL", khoroCommInitOver(NULL, 1, 0, gather, self, NULL));
  CHECK_REFUSED(bad, "of 0 ranks", khoroCommInitOver(&comm, 0, 0, gather, self, NULL));
  CHECK_REFUSED(bad, "rank 2 of 2", khoroCommInitOver(&comm, 2, 2, gather, self, NULL));
  CHECK_REFUSED(bad, "exchange is NULL", khoroCommInitOver(&comm, 1, 0, NULL, self, NULL));
  CHECK_REFUSED(bad, "config: its magic", khoroCommInitOver(&comm, 1, 0, gather, self, &config));
  CHECK(!comm && self->round == 0); /* nothing was exchanged */
}

int main(void) {
  run(3, 1, none, all_join_twice);
  run(1, 3, none, all_join_twice);
  run(2, 2, none, all_join_twice);
  run(1, 1, none, all_join_twice);
  run(3, 1, fails, its_error_is_returned);
  run(1, 3, fails_unheard_of, its_error_is_returned);
  run(3, 1, swaps, wrong_order_is_found);
  run(2, 1, is_slow, its_time_is_its_own);
  run(3, 1, none, numbers_of_ranks_differ);
  run(3, 1, none, one_cannot_prepare);
  run(3, 1, none, begun_and_waited_for);
  run(2, 2, none, begun_and_waited_for);
  run(1, 1, none, in_a_group);
  run(1, 1, none, bad_arguments_are_refused);
  return 0;
}
