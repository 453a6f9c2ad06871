/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory has no name in the file system: a /dev/shm that is small, full or absent does not
 * matter, and killed ranks leave nothing there or elsewhere. */
#include "usage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { ranks = 3 };

static void use(khoroComm_t comm, int rank, int size) {
  const size_t count = 1 << 20; /* 4 MiB, more than the folder holds */
  float* buffer = malloc(count * sizeof *buffer);
  CHECK(buffer);
  for (size_t i = 0; i < count; ++i) buffer[i] = (float)rank;
  OK(khoroAllReduce(buffer, buffer, count, khoroFloat32, khoroSum, comm, NULL));
  CHECK(buffer[count - 1] == (float)(size * (size - 1) / 2));
  free(buffer);
}

/* Mounts are seen by this process and its children alone from now on. */
static int have_own_mounts(void) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 0;
  return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void fill_up(const char* path) {
  static char block[4096];
  const int file = open(path, O_CREAT | O_WRONLY, 0600);
  CHECK(file >= 0);
  while (write(file, block, sizeof block) > 0) continue;
  close(file);
}

/* Names of sockets in use that Khoro gave. */
static int sockets(void) {
  char line[512];
  int count = 0;
  FILE* file = fopen("/proc/net/unix", "r");
  CHECK(file);
  while (fgets(line, sizeof line, file)) count += strstr(line, "@khoro-") != NULL;
  fclose(file);
  return count;
}

static void hold_until_killed(struct meeting_place* place) {
  khoroComm_t comms[2];
  khoroUniqueId id;
  OK(khoroCommInitAllHost(comms, 2));
  OK(khoroGetUniqueId(&id));
  set_flag(place, 0);
  for (;;) sleep_ms(1000);
}

static void killed_ranks_leave_no_file_and_no_socket(void) {
  const int files = entries("/dev/shm");
  /* Sockets of other jobs may come and go on this machine: in a network of one's own there are
   * none. */
  const int alone = unshare(CLONE_NEWNET) == 0;
  for (int round = 0; round < 200; ++round) {
    struct meeting_place* place = make_meeting_place();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) hold_until_killed(place);
    await_flag(place, 0);
    if (alone) CHECK(sockets() > 0);
    CHECK(kill(child, SIGKILL) == 0);
    check_killed(child);
    munmap(place, sizeof *place);
  }
  CHECK(entries("/dev/shm") == files);
  if (alone) CHECK(sockets() == 0);
}

int main(void) {
  if (!have_own_mounts()) {
    printf("this user may not mount anything\n");
    return 77;
  }
  CHECK(mount("none", "/dev/shm", "tmpfs", 0, "size=1m") == 0);
  run_processes(ranks, use);
  killed_ranks_leave_no_file_and_no_socket();
  fill_up("/dev/shm/full");
  run_processes(ranks, use);
  CHECK(mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) == 0);
  run_processes(ranks, use);
  CHECK(mount("none", "/dev", "tmpfs", 0, "size=4k") == 0); /* now there is none */
  struct stat status;
  CHECK(stat("/dev/shm", &status) != 0);
  run_processes(ranks, use);
  run_threads(ranks, use);
  return 0;
}
