/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that interrupt system calls a thousand times a second, a reader that has gone while
 * SIGPIPE kills, and ranks that are stopped for a while: calls do what they promise. */
#include "values.h"

#include <sys/time.h>

static int storms;

static void count_storm(int number) {
  (void)number;
  __atomic_add_fetch(&storms, 1, __ATOMIC_RELAXED);
}

/* From now on every slow system call of this process is interrupted, if signals come. */
static void take_storms(void) {
  struct sigaction action = {0};
  action.sa_handler = count_storm; /* without SA_RESTART */
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
}

static void set_storm(long microseconds) {
  const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void check_reduced(const float* out, size_t count, int ranks) {
  for (size_t i = 0; i < count; i += 997) {
    double sum = 0;
    for (int r = 0; r < ranks; ++r) sum += contribution(r, i);
    CHECK(out[i] == (float)sum);
  }
}

/* Sleeps although signals interrupt it. */
static void be_late(double by) {
  const double end = seconds() + by;
  while (seconds() < end) sleep_ms(1);
}

static void use(khoroComm_t comm, int rank, int ranks) {
  static float in[8][50000], out[8][50000];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  fill(in[rank], khoroFloat32, 50000, rank, 0);
  for (int i = 0; i < 60; ++i) {
    const size_t count = i % 3 ? 50000 : 7;
    if (i % 20 == rank) be_late(0.02); /* the others sleep */
    OK(khoroAllReduce(in[rank], out[rank], count, khoroFloat32, khoroSum, comm, NULL));
    check_reduced(out[rank], count, ranks);
    OK(khoroGroupStart());
    OK(khoroSend(in[rank], count, khoroFloat32, right, comm, NULL));
    OK(khoroRecv(out[rank], count, khoroFloat32, left, comm, NULL));
    OK(khoroGroupEnd());
    CHECK(out[rank][count - 1] == (float)contribution(left, count - 1));
    if (i % 10 == 0) OK(khoroBarrier(comm, NULL));
  }
}

/* Init, calls and destroy, all in the storm. */
static void processes_in_a_storm(void) {
  enum { ranks = 3 };
  struct meeting_place* places[3];
  pid_t children[ranks];
  for (int i = 0; i < 3; ++i) places[i] = make_meeting_place();
  for (int rank = 0; rank < ranks; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] > 0) continue;
    take_storms();
    set_storm(1000);
    for (int i = 0; i < 3; ++i) {
      be_late(0.05 * ((rank + i) % ranks)); /* those that come first wait in init */
      khoroComm_t comm = join_at(places[i], ranks, rank);
      use(comm, rank, ranks);
      OK(khoroCommDestroy(comm));
    }
    CHECK(__atomic_load_n(&storms, __ATOMIC_RELAXED) > 0);
    exit(0);
  }
  for (int rank = 0; rank < ranks; ++rank) check_exit(children[rank]);
}

static pthread_t stormed[4];
static int storm_is_over;

static void* storm_at_all(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&storm_is_over, __ATOMIC_ACQUIRE)) {
    for (int i = 0; i < 4; ++i) pthread_kill(stormed[i], SIGALRM);
    sleep_ms(1);
  }
  return NULL;
}

static void* use_in_thread(void* argument) {
  const struct rank_thread* self = argument;
  self->body(self->comm, self->rank, self->ranks);
  while (!__atomic_load_n(&storm_is_over, __ATOMIC_ACQUIRE))
    sleep_ms(1); /* a thread that has ended takes no signals */
  return NULL;
}

static void use_and_count(khoroComm_t comm, int rank, int ranks) {
  static int users;
  use(comm, rank, ranks);
  if (__atomic_add_fetch(&users, 1, __ATOMIC_ACQ_REL) == ranks)
    __atomic_store_n(&storm_is_over, 1, __ATOMIC_RELEASE);
}

static void threads_in_a_storm(void) {
  enum { ranks = 4 };
  khoroComm_t comms[ranks];
  struct rank_thread selves[ranks];
  pthread_t storm;
  take_storms();
  OK(khoroCommInitAllHost(comms, ranks));
  for (int r = 0; r < ranks; ++r) {
    selves[r] = (struct rank_thread){use_and_count, comms[r], r, ranks};
    CHECK(pthread_create(&stormed[r], NULL, use_in_thread, &selves[r]) == 0);
  }
  CHECK(pthread_create(&storm, NULL, storm_at_all, NULL) == 0);
  CHECK(pthread_join(storm, NULL) == 0);
  for (int r = 0; r < ranks; ++r) CHECK(pthread_join(stormed[r], NULL) == 0);
  for (int r = 0; r < ranks; ++r) OK(khoroCommDestroy(comms[r]));
  CHECK(__atomic_load_n(&storms, __ATOMIC_RELAXED) > 0);
}

static struct meeting_place* place;

/* Survivors of a death end by themselves: no write of theirs to what the dead one read kills. */
static void rank_1_is_killed(khoroComm_t comm, int rank, int ranks) {
  float in = 1, out = 0;
  (void)ranks;
  khoroResult_t result = khoroSuccess;
  while (result == khoroSuccess) {
    result = khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL);
    set_flag(place, rank);
  }
  CHECK(result == khoroPeerDied);
  CHECK_WORDS("rank 1");
}

static void sigpipe_kills_no_survivor(void) {
  enum { ranks = 3 };
  pid_t children[ranks];
  CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  for (int during_init = 0; during_init < 2; ++during_init) {
    place = make_meeting_place();
    if (during_init) CHECK(setenv("KHORO_INIT_DEADLINE", "5s", 1) == 0);
    for (int r = 0; r < ranks; ++r) {
      children[r] = fork();
      CHECK(children[r] >= 0);
      if (children[r] > 0) continue;
      khoroComm_t comm = NULL;
      if (during_init && r == 2) { /* comes when rank 1 has been there and died */
        await_flag(place, 1);
        CHECK(khoroCommInitRank(&comm, ranks, place->id, r) != khoroSuccess);
        exit(0);
      }
      if (during_init && r == 0) {
        const khoroResult_t told = khoroCommInitRank(&comm, ranks, id_at(place, 1), r);
        /* Where rank 1 was killed before it had come, it is missing. */
        CHECK(told == khoroPeerDied || told == khoroTimeout);
        exit(0);
      }
      comm = join_at(place, ranks, r);
      rank_1_is_killed(comm, r, ranks);
      OK(khoroCommDestroy(comm));
      exit(0);
    }
    if (during_init) {
      sleep_ms(200); /* rank 1 is at the meeting, most likely */
    } else {
      for (int r = 0; r < ranks; ++r) await_flag(place, r);
    }
    CHECK(kill(children[1], SIGKILL) == 0);
    if (during_init) set_flag(place, 1);
    check_killed(children[1]);
    check_exit(children[0]);
    check_exit(children[2]);
  }
  CHECK(unsetenv("KHORO_INIT_DEADLINE") == 0);
}

static void loop_until_told(khoroComm_t comm, int rank, int ranks) {
  static float in[3000], out[3000];
  int32_t last = 0, all = 0;
  fill(in, khoroFloat32, 3000, rank, 0);
  while (!all) {
    OK(khoroAllReduce(in, out, 3000, khoroFloat32, khoroSum, comm, NULL));
    check_reduced(out, 3000, ranks);
    __atomic_store_n(&place->flags[rank], place->flags[rank] + 1, __ATOMIC_RELEASE);
    last = __atomic_load_n(&place->flags[63], __ATOMIC_ACQUIRE);
    OK(khoroAllReduce(&last, &all, 1, khoroInt32, khoroMax, comm, NULL));
  }
}

/* A rank that is stopped and goes on costs time and nothing else. */
static void a_stopped_rank_goes_on(void) {
  enum { ranks = 3 };
  pid_t children[ranks];
  place = make_meeting_place();
  for (int r = 0; r < ranks; ++r) children[r] = start_process(place, ranks, r, loop_until_told);
  for (int r = 0; r < ranks; ++r) await_flag(place, r);
  for (int i = 0; i < 6; ++i) {
    CHECK(kill(children[i % ranks], SIGSTOP) == 0);
    sleep_ms(200);
    CHECK(kill(children[i % ranks], SIGCONT) == 0);
    const int before = place->flags[i % ranks];
    while (__atomic_load_n(&place->flags[i % ranks], __ATOMIC_ACQUIRE) == before) sleep_ms(1);
  }
  set_flag(place, 63);
  for (int r = 0; r < ranks; ++r) check_exit(children[r]);
}

static void stop_between_two_calls(khoroComm_t comm, int rank, int ranks) {
  float in = 1, out = 0;
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  CHECK(out == (float)ranks);
  OK(khoroCommSetDeadline(comm, 500));
  if (rank == 1) CHECK(raise(SIGSTOP) == 0);
  khoroResult_t result = khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL);
  if (rank == 1 && result == khoroSuccess) {
    /* It finds all that it needs: what the others sent before they gave up. */
    CHECK(out == (float)ranks);
    result = khoroBarrier(comm, NULL);
  }
  CHECK(result == khoroTimeout);
  CHECK_WORDS("rank 1");
  CHECK_WORDS("allreduce");
}

/* One that does not go on is named at the deadline, and learns of it when it does. */
static void a_stopped_rank_is_named_at_the_deadline(void) {
  enum { ranks = 3 };
  pid_t children[ranks];
  int status = 0;
  place = make_meeting_place();
  for (int r = 0; r < ranks; ++r)
    children[r] = start_process(place, ranks, r, stop_between_two_calls);
  CHECK(waitpid(children[1], &status, WUNTRACED) == children[1] && WIFSTOPPED(status));
  check_exit(children[0]);
  check_exit(children[2]);
  CHECK(kill(children[1], SIGCONT) == 0);
  check_exit(children[1]);
}

int main(void) {
  processes_in_a_storm();
  sigpipe_kills_no_survivor();
  a_stopped_rank_goes_on();
  a_stopped_rank_is_named_at_the_deadline();
  threads_in_a_storm();
  return 0;
}
