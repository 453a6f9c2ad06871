/* SPDX-License-Identifier: Apache-2.0 */
/* Who may join, seen from a program: a key in a file, strangers at the meeting's socket, other
 * users; and that nothing of it can be reached over a network. */
#include "check.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char key_file[] = "/tmp/khoro-test-key-XXXXXX";
static char other_key_file[] = "/tmp/khoro-test-key-XXXXXX";

static void write_key(const char* path, char fill, mode_t mode) {
  char bytes[32];
  memset(bytes, fill, sizeof bytes);
  FILE* file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, sizeof bytes, file) == sizeof bytes && fclose(file) == 0);
  CHECK(chmod(path, mode) == 0);
}

static void set_rank(int rank, int ranks) {
  char text[16];
  snprintf(text, sizeof text, "%d", rank);
  setenv("KHORO_RANK", text, 1);
  snprintf(text, sizeof text, "%d", ranks);
  setenv("KHORO_SIZE", text, 1);
  setenv("KHORO_JOB_KEY_FILE", key_file, 1);
}

static void sum_is_right(khoroComm_t comm, int rank, int ranks) {
  int64_t one = 1 << rank, all = 0;
  OK(khoroAllReduce(&one, &all, 1, khoroInt64, khoroSum, comm, NULL));
  CHECK(all == (1 << ranks) - 1);
  OK(khoroBarrier(comm, NULL));
}

static pid_t start_rank(int rank, int ranks) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child > 0) return child;
  khoroComm_t comm;
  set_rank(rank, ranks);
  OK(khoroCommInitWorld(&comm));
  sum_is_right(comm, rank, ranks);
  OK(khoroCommDestroy(comm));
  exit(0);
}

static void joined_by_a_key_file(void) {
  pid_t children[3];
  for (int r = 0; r < 3; ++r) children[r] = start_rank(r, 3);
  for (int r = 0; r < 3; ++r) check_exit(children[r]);
}

static void miss_rank_0(void) {
  khoroComm_t none = NULL;
  set_rank(1, 2);
  setenv("KHORO_JOB_KEY_FILE", other_key_file, 1);
  setenv("KHORO_INIT_DEADLINE", "2s", 1);
  CHECK_RESULT(khoroTimeout, khoroCommInitWorld(&none));
  CHECK_WORDS("rank 0 did not open the meeting");
  CHECK(!none);
}

/* A rank that read another key meets nobody, and the others still wait for the right one. */
static void another_key_meets_nobody(void) {
  const pid_t waits = start_rank(0, 2);
  run_in_child(miss_rank_0);
  check_exit(start_rank(1, 2));
  check_exit(waits);
}

static void bad_key_files_are_refused(void) {
  khoroComm_t none = NULL;
  write_key(key_file, 'k', 0644);
  set_rank(0, 2);
  CHECK_REFUSED(khoroInvalidArgument, key_file, khoroCommInitWorld(&none));
  CHECK_WORDS("chmod 600");
  unsetenv("KHORO_JOB_KEY_FILE");
  CHECK_REFUSED(khoroInvalidArgument, "KHORO_JOB_KEY_FILE", khoroCommInitWorld(&none));
  setenv("KHORO_JOB_KEY_FILE", "/nowhere/key", 1);
  CHECK_REFUSED(khoroInvalidArgument, "/nowhere/key", khoroCommInitWorld(&none));
  CHECK(!none);
  unsetenv("KHORO_RANK"), unsetenv("KHORO_SIZE"), unsetenv("KHORO_JOB_KEY_FILE");
}

/* Every socket that this process has. */
static int sockets_that_are_not_unix(void) {
  int found = 0;
  DIR* open = opendir("/proc/self/fd");
  CHECK(open);
  for (const struct dirent* entry = readdir(open); entry; entry = readdir(open)) {
    int domain = 0;
    socklen_t size = sizeof domain;
    if (entry->d_name[0] == '.') continue;
    if (getsockopt(atoi(entry->d_name), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0)
      found += domain != AF_UNIX;
  }
  closedir(open);
  return found;
}

static struct meeting_place* place;

/* Connects to the meeting's socket, as a scanner would, and leaves: one time in three after junk of
 * a wrong size, one after a frame that is none. False if its queue was full. */
static int visit_meeting(int number) {
  char bytes[256] = "GET / HTTP/1.1";
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  /* After the first 16 bytes, which hold version and magic. */
  const char* name = memmem(place->id.internal + 16, sizeof place->id.internal - 16, "khoro-", 6);
  const size_t length = strlen("khoro-") + 32;
  CHECK(name && name + length <= place->id.internal + sizeof place->id.internal);
  memcpy(address.sun_path + 1, name, length);
  const int visitor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
  CHECK(visitor >= 0);
  const int came = connect(visitor, (struct sockaddr*)&address,
                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0;
  if (came && number % 3 > 0) (void)!send(visitor, bytes, number % 3 == 1 ? 77 : 256, MSG_NOSIGNAL);
  close(visitor);
  return came;
}

static void visited_rank(khoroComm_t comm, int rank, int ranks) {
  /* They come while visitors come and go, the last one after all of them. */
  while (place->flags[0] < 1000 * rank / (ranks - 1)) sleep_ms(1);
  OK(khoroCommInitRank(&comm, ranks, place->id, rank));
  CHECK(sockets_that_are_not_unix() == 0);
  sum_is_right(comm, rank, ranks);
  OK(khoroCommDestroy(comm));
}

static volatile int refusals;
static void count_refusals(void* context, int level, const char* line) {
  (void)context, (void)level;
  if (strstr(line, "refused")) __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
}

static void a_thousand_visitors_do_no_harm(void) {
  place = make_meeting_place();
  const pid_t ranks = fork();
  CHECK(ranks >= 0);
  if (ranks == 0) {
    OK(khoroSetLogCallback(count_refusals, NULL));
    id_at(place, 1);
    CHECK(sockets_that_are_not_unix() == 0);
    run_on_threads(NULL, 0, 8, 8, visited_rank);
    CHECK(refusals > 0 && refusals <= 11); /* ten lines, and one that counts the rest */
    exit(0);
  }
  id_at(place, 0);
  int visits = 0;
  const double end = seconds() + 100;
  while (visits < 1000 && seconds() < end) {
    if (visit_meeting(visits))
      place->flags[0] = ++visits;
    else
      sleep_ms(1);
  }
  CHECK(visits == 1000);
  check_exit(ranks);
}

/* Another user who got hold of the id. */
static void join_as_another_user(void) {
  khoroComm_t none = NULL;
  CHECK(setuid(65534) == 0);
  CHECK_RESULT(khoroInvalidUsage, khoroCommInitRank(&none, 2, place->id, 1));
  CHECK_WORDS("belongs to user 0, not to this one");
  CHECK(!none);
}

static void another_user_is_refused(void) {
  if (geteuid() != 0) {
    fprintf(stderr, "skipped: only root can become another user\n");
    return;
  }
  place = make_meeting_place();
  const pid_t host = fork();
  CHECK(host >= 0);
  if (host == 0) {
    khoroComm_t comm;
    const khoroUniqueId id = id_at(place, 1);
    await_flag(place, 0);
    OK(khoroCommInitRank(&comm, 1, id, 0)); /* and no harm was done */
    exit(0);
  }
  id_at(place, 0);
  run_in_child(join_as_another_user);
  set_flag(place, 0);
  check_exit(host);
}

int main(void) {
  const int files[] = {mkstemp(key_file), mkstemp(other_key_file)};
  for (int i = 0; i < 2; ++i) CHECK(files[i] >= 0 && close(files[i]) == 0);
  write_key(key_file, 'k', 0600);
  write_key(other_key_file, 'x', 0600);
  joined_by_a_key_file();
  another_key_meets_nobody();
  a_thousand_visitors_do_no_harm();
  another_user_is_refused();
  bad_key_files_are_refused();
  CHECK(unlink(key_file) == 0 && unlink(other_key_file) == 0);
  return 0;
}
