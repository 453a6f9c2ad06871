/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of any kind that the kernel copies between processes where it permits, and ranks that it
 * does not permit it to, from the start or from some moment on. */
#include "check.h"

#include <sys/prctl.h>
#include <sys/uio.h>

enum { first_user = 54321, second_user = 54322 };
static const size_t count = 1 << 16; /* of 32-bit numbers: short enough to be copied so */

/* Who is root may read everything: nobody here is. */
static void become(uid_t real, uid_t effective) {
  CHECK(setresuid(real, effective, effective) == 0);
  CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
}

/* Sends both ways, apart and at a time; says what the kernel has not copied. */
static uint64_t exchange(khoroComm_t comm, int rank) {
  int32_t *in = malloc(4 * count), *out = malloc(4 * count);
  const uint64_t before = statistics_of(comm).bytesSent;
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < count; ++i) in[i] = (int32_t)(i * 31 + (size_t)(rank * 7 + round));
    memset(out, 0, 4 * count);
    if (round < 2) {
      if (rank == round) OK(khoroSend(in, count, khoroInt32, 1 - rank, comm, NULL));
      if (rank != round) OK(khoroRecv(out, count, khoroInt32, 1 - rank, comm, NULL));
    } else {
      OK(khoroGroupStart());
      OK(khoroSend(in, count, khoroInt32, 1 - rank, comm, NULL));
      OK(khoroRecv(out, count, khoroInt32, 1 - rank, comm, NULL));
      OK(khoroGroupEnd());
    }
    for (size_t i = 0; i < count && (round >= 2 || rank != round); ++i)
      CHECK(out[i] == (int32_t)(i * 31 + (size_t)((1 - rank) * 7 + round)));
    for (size_t i = 0; i < count; ++i)
      CHECK(in[i] == (int32_t)(i * 31 + (size_t)(rank * 7 + round)));
  }
  free(in);
  free(out);
  return statistics_of(comm).bytesSent - before;
}

static struct meeting_place* place;
static int permitted; /* by this kernel, to processes of one user */
static const uint64_t all = 3 * 4 * 65536, little = all / 64;

static void* a_word(void) {
  static uint64_t word = 42;
  return &word;
}

/* Whether a process may read another one of its user. */
static void find_out(void) {
  int ends[2], status = 0;
  CHECK(pipe(ends) == 0);
  const pid_t first = fork();
  CHECK(first >= 0);
  if (first == 0) {
    char byte;
    become(first_user, first_user);
    CHECK(close(ends[1]) == 0 && read(ends[0], &byte, 1) == 0);
    _exit(0);
  }
  const pid_t second = fork();
  CHECK(second >= 0);
  if (second == 0) {
    uint64_t found = 0;
    become(first_user, first_user);
    sleep_ms(200);
    const struct iovec here = {&found, sizeof found}, there = {a_word(), sizeof found};
    _exit(process_vm_readv(first, &here, 1, &there, 1, 0) == sizeof found && found == 42 ? 0 : 1);
  }
  CHECK(waitpid(second, &status, 0) == second);
  permitted = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
  check_exit(first);
  if (!permitted) fprintf(stderr, "this kernel permits no process to read another one\n");
}

static void of_one_user(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  const uint64_t copied = exchange(comm, rank);
  if (permitted) CHECK(copied < little);
}

/* Nobody may read rank 1 from some moment on: what it sends is copied, and what it gets is not. */
static void forbidden_in_between(khoroComm_t comm, int rank, int ranks) {
  of_one_user(comm, rank, ranks);
  if (rank == 1) CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
  OK(khoroBarrier(comm, NULL));
  for (int round = 0; round < 3; ++round) {
    const uint64_t copied = exchange(comm, rank);
    if (rank == 1) CHECK(copied >= all);
    if (permitted && rank == 0) CHECK(copied < little);
  }
}

static void forbidden_from_the_start(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  const uint64_t copied = exchange(comm, rank);
  if (rank == 1) CHECK(copied >= all);
  if (permitted && rank == 0) CHECK(copied < little);
}

static void of_two_users(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  CHECK(exchange(comm, rank) >= all);
}

/* Two ranks of processes whose users are given, and of which rank 1 may be hidden from others. */
static void run(uid_t user_of_rank_1, int hidden, rank_body body) {
  place = make_meeting_place();
  pid_t children[2];
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] > 0) continue;
    become(rank == 1 ? user_of_rank_1 : first_user, first_user);
    if (rank == 1 && hidden) CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
    khoroComm_t comm = join_at(place, 2, rank);
    exchange(comm, rank); /* what is sent while the peer opens its end is copied */
    body(comm, rank, 2);
    OK(khoroCommDestroy(comm));
    exit(0);
  }
  for (int rank = 0; rank < 2; ++rank) check_exit(children[rank]);
}

int main(void) {
  if (geteuid() != 0) {
    fprintf(stderr, "skipped: only root can take another user's part\n");
    return 77;
  }
  find_out();
  run(first_user, 0, of_one_user);
  run(first_user, 0, forbidden_in_between);
  run(first_user, 1, forbidden_from_the_start);
  run(second_user, 0, of_two_users);
  return 0;
}
