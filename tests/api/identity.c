/* SPDX-License-Identifier: Apache-2.0 */
/* Who may join, seen from a program: a key in a file, strangers at the meeting's socket, other
 * users; and that nothing of it can be reached over a network. */
#include "check.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char key_file[] = "/tmp/khoro-test-key-XXXXXX";

static void write_key(char fill, mode_t mode) {
  char bytes[32];
  memset(bytes, fill, sizeof bytes);
  FILE* file = fopen(key_file, "wb");
  CHECK(file && fwrite(bytes, 1, sizeof bytes, file) == sizeof bytes && fclose(file) == 0);
  CHECK(chmod(key_file, mode) == 0);
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

static void joined_by_a_key_file(void) {
  pid_t children[3];
  write_key('k', 0600);
  for (int r = 0; r < 3; ++r) {
    children[r] = fork();
    CHECK(children[r] >= 0);
    if (children[r] > 0) continue;
    khoroComm_t comm;
    set_rank(r, 3);
    OK(khoroCommInitWorld(&comm));
    sum_is_right(comm, r, 3);
    OK(khoroCommDestroy(comm));
    exit(0);
  }
  for (int r = 0; r < 3; ++r) check_exit(children[r]);
}

/* Rank 1 read another key: it meets nobody, and the others miss it. */
static void another_key_meets_nobody(void) {
  int read_first[2];
  CHECK(pipe(read_first) == 0);
  for (int r = 0; r < 2; ++r) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) continue;
    khoroComm_t comm = NULL;
    khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
    config.blocking = 0; /* the file is read in the call */
    set_rank(r, 2);
    setenv("KHORO_INIT_DEADLINE", "3s", 1);
    char byte = 0;
    if (r == 1) CHECK(read(read_first[0], &byte, 1) == 1);
    if (r == 1) write_key('x', 0600);
    CHECK_RESULT(khoroInProgress, khoroCommInitWorldConfig(&comm, &config));
    if (r == 0) CHECK(write(read_first[1], &byte, 1) == 1);
    khoroResult_t error = khoroInProgress;
    while (error == khoroInProgress) {
      sleep_ms(10);
      OK(khoroCommGetAsyncError(comm, &error));
    }
    CHECK(error == khoroTimeout);
    check_words(__FILE__, __LINE__, khoroGetLastError(comm),
                r == 0 ? "rank 1 of 2 did not come" : "rank 0 did not open the meeting");
    OK(khoroCommDestroy(comm));
    exit(0);
  }
  int status = 0;
  for (int r = 0; r < 2; ++r) CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
  close(read_first[0]), close(read_first[1]);
}

static void bad_key_files_are_refused(void) {
  khoroComm_t none = NULL;
  write_key('k', 0644);
  set_rank(0, 2);
  CHECK_REFUSED(khoroInvalidArgument, key_file, khoroCommInitWorld(&none));
  CHECK_WORDS("chmod 600");
  unsetenv("KHORO_JOB_KEY_FILE");
  CHECK_REFUSED(khoroInvalidUsage, "KHORO_JOB_KEY_FILE", khoroCommInitWorld(&none));
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

enum { visited_ranks = 8 };

static void* visited_rank(void* argument) {
  const int rank = *(int*)argument;
  khoroComm_t comm;
  /* They come while visitors come and go, the last one after all of them. */
  while (place->flags[0] < 1000 * rank / (visited_ranks - 1)) sleep_ms(1);
  OK(khoroCommInitRank(&comm, visited_ranks, place->id, rank));
  CHECK(sockets_that_are_not_unix() == 0);
  sum_is_right(comm, rank, visited_ranks);
  OK(khoroCommDestroy(comm));
  return NULL;
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
    pthread_t threads[visited_ranks];
    int numbers[visited_ranks];
    OK(khoroSetLogCallback(count_refusals, NULL));
    OK(khoroGetUniqueId(&place->id));
    CHECK(sockets_that_are_not_unix() == 0);
    __atomic_store_n(&place->written, 1, __ATOMIC_RELEASE);
    for (int r = 0; r < visited_ranks; ++r) {
      numbers[r] = r;
      CHECK(pthread_create(&threads[r], NULL, visited_rank, &numbers[r]) == 0);
    }
    for (int r = 0; r < visited_ranks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
    CHECK(refusals > 0 && refusals <= 11); /* ten lines, and one that counts the rest */
    exit(0);
  }
  while (!__atomic_load_n(&place->written, __ATOMIC_ACQUIRE)) sleep_ms(1);
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
    OK(khoroGetUniqueId(&place->id));
    __atomic_store_n(&place->written, 1, __ATOMIC_RELEASE);
    while (place->flags[0] == 0) sleep_ms(1);
    OK(khoroCommInitRank(&comm, 1, place->id, 0)); /* and no harm was done */
    exit(0);
  }
  while (!__atomic_load_n(&place->written, __ATOMIC_ACQUIRE)) sleep_ms(1);
  const pid_t stranger = fork();
  CHECK(stranger >= 0);
  if (stranger == 0) {
    khoroComm_t comm = NULL;
    CHECK(setuid(65534) == 0);
    CHECK_RESULT(khoroInvalidUsage, khoroCommInitRank(&comm, 2, place->id, 1));
    CHECK_WORDS("belongs to user 0, not to this one");
    CHECK(!comm);
    exit(0);
  }
  check_exit(stranger);
  place->flags[0] = 1;
  check_exit(host);
}

int main(void) {
  const int file = mkstemp(key_file);
  CHECK(file >= 0 && close(file) == 0);
  joined_by_a_key_file();
  another_key_meets_nobody();
  a_thousand_visitors_do_no_harm();
  another_user_is_refused();
  bad_key_files_are_refused();
  CHECK(unlink(key_file) == 0);
  return 0;
}
