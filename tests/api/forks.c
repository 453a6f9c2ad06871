/* SPDX-License-Identifier: Apache-2.0 */
/* fork, exec and daemon: the parent goes on, a child is told that it cannot use what it has copied
 * and holds none of it, and a program that is run in the child begins anew. */
#include "refusals.h"
#include "usage.h"

#include <spawn.h>

extern char** environ;

static const char* own_path;
static struct meeting_place* place;
static int base; /* descriptors before Khoro was used */

/* Everything that has a result, in a child. */
static void every_call_is_refused(khoroComm_t comm) {
  const struct refusal refusal = {khoroInvalidUsage, "forked"};
  int number = 77;
  khoroComm_t other = NULL;
  khoroStream_t stream = NULL;
  khoroEvent_t event = NULL;
  khoroUniqueId id;
  check_comm_refused(comm, refusal);
  CHECK_WORDS("exec");
  check_stream_refused(stream, event, refusal);
  check_event_refused(event, stream, refusal);
  REFUSED(khoroGroupStart());
  REFUSED(khoroGroupEnd());
  REFUSED(khoroGetUniqueId(&id));
  REFUSED(khoroCommInitRank(&other, 1, place->id, 0));
  REFUSED(khoroCommInitAllHost(&other, 1));
  REFUSED(khoroCommInitWorld(&other));
  REFUSED(khoroStreamCreate(&stream));
  REFUSED(khoroEventCreate(&event));
  REFUSED(khoroGetVersion(&number));
  REFUSED(khoroSetLogCallback(NULL, NULL));
  CHECK(number == 77 && !other && !stream && !event);
  CHECK(strlen(khoroGetErrorString(khoroInvalidUsage)) > 0);
  check_words(__FILE__, __LINE__, khoroGetLastError(comm), "forked");
}

static pid_t fork_a_child(khoroComm_t comm, int with_destructors) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child > 0) return child;
  CHECK(descriptors() == base);
  every_call_is_refused(comm);
  if (with_destructors) exit(0);
  _exit(0);
}

static void reduce(khoroComm_t comm, int rank, int ranks, size_t count) {
  static float buffer[70000];
  for (size_t i = 0; i < count; ++i) buffer[i] = (float)(rank + 1);
  OK(khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroSum, comm, NULL));
  CHECK(buffer[count - 1] == (float)(ranks * (ranks + 1) / 2));
}

/* Rank 1 forks again and again while the ranks call, and its children end as they like. */
static void a_child_disturbs_neither_its_parent_nor_the_peers(khoroComm_t comm, int rank,
                                                              int ranks) {
  pid_t children[20];
  int running = 0;
  for (int i = 0; i < 20; ++i) {
    reduce(comm, rank, ranks, i % 2 ? 1 : 70000);
    if (rank != 1) continue;
    children[running++] = fork_a_child(comm, i % 2);
    if (i % 3 == 0) check_exit(children[--running]); /* the others end while the ranks go on */
  }
  while (running > 0) check_exit(children[--running]);
  reduce(comm, rank, ranks, 70000);
  CHECK(async_error(comm) == khoroSuccess);
}

static void* fork_beside_a_call(void* comm) {
  sleep_ms(100); /* the main thread is in its call by now */
  check_exit(fork_a_child(comm, 1));
  set_flag(place, 0);
  return NULL;
}

/* Another thread of rank 0 forks while rank 0 waits for rank 1. */
static void a_fork_beside_a_call_is_no_matter(khoroComm_t comm, int rank, int ranks) {
  pthread_t thread;
  if (rank == 0) CHECK(pthread_create(&thread, NULL, fork_beside_a_call, comm) == 0);
  if (rank == 1) await_flag(place, 0);
  reduce(comm, rank, ranks, 100);
  if (rank == 0) CHECK(pthread_join(thread, NULL) == 0);
}

/* What a child runs begins anew: it holds no descriptor of its parent and may use Khoro. */
static void a_program_run_in_a_child_begins_anew(khoroComm_t comm, int rank, int ranks) {
  char number[16];
  snprintf(number, sizeof number, "%d", base);
  char* const arguments[] = {(char*)own_path, "anew", number, NULL};
  pid_t child;
  reduce(comm, rank, ranks, 10);
  if (rank == 1) {
    CHECK(posix_spawn(&child, own_path, NULL, NULL, arguments, environ) == 0);
    check_exit(child);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      execv(own_path, arguments);
      _exit(1);
    }
    check_exit(child);
    CHECK(system("exit 0") == 0);
  }
  reduce(comm, rank, ranks, 10);
}

static int run_anew(int expected) {
  CHECK(descriptors() == expected);
  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroBarrier(comm, NULL));
  OK(khoroCommDestroy(comm));
  return 0;
}

/* The parent of a daemon ends: its rank is dead, and the daemon is a child like another. */
static void a_rank_that_becomes_a_daemon_is_dead(khoroComm_t comm, int rank, int ranks) {
  reduce(comm, rank, ranks, 10);
  if (rank == 0) set_flag(place, 2);
  if (rank == 1) {
    await_flag(place, 2);
    CHECK(daemon(1, 1) == 0);
    every_call_is_refused(comm);
    set_flag(place, 1);
    _exit(0);
  }
  CHECK_RESULT(khoroPeerDied, khoroBarrier(comm, NULL));
  CHECK_WORDS("rank 1");
  await_flag(place, 1);
}

/* Nobody waits for daemons: they say by a flag that all was right. */
static void daemons_are_ranks_like_others(void) {
  enum { ranks = 3 };
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) {
      check_exit(child);
      continue;
    }
    CHECK(daemon(0, 0) == 0);
    khoroComm_t comm = join_at(place, ranks, rank);
    reduce(comm, rank, ranks, 70000);
    OK(khoroCommDestroy(comm));
    set_flag(place, rank);
    exit(0);
  }
  for (int rank = 0; rank < ranks; ++rank) await_flag(place, rank);
}

static void run(int ranks, rank_body body) {
  place = make_meeting_place();
  run_processes_at(place, ranks, body);
}

int main(int argc, char** argv) {
  if (argc == 3) return run_anew(atoi(argv[2]));
  own_path = "/proc/self/exe";
  base = descriptors();
  run(3, a_child_disturbs_neither_its_parent_nor_the_peers);
  run(2, a_fork_beside_a_call_is_no_matter);
  run(2, a_program_run_in_a_child_begins_anew);
  run(2, a_rank_that_becomes_a_daemon_is_dead);
  place = make_meeting_place();
  daemons_are_ranks_like_others();
  return 0;
}
