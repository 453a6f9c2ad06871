/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 is killed, and 0.5 s pass from the moment when the system closes its files to the one when
   its end can be seen. Rank 0 fails as soon as it sees them closed. usage: slow_death FIFO */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int fifo;
static sem_t ready;

/* Keeps the process from its end when the thread that holds the files has ended. */
static void* last_thread(void* unused) {
  const struct timespec pause = {0, 500000000};
  (void)unused;
  if (unshare(CLONE_FILES) != 0) _exit(1);
  close(fifo);
  sem_post(&ready);
  nanosleep(&pause, NULL);
  kill(getpid(), SIGKILL);
  return NULL;
}

int main(int argc, char** argv) {
  const char* rank = getenv("KHORO_RANK");
  pthread_t thread;
  char byte;
  if (argc != 2 || !rank) return 2;
  if (strcmp(rank, "0") == 0) {
    fifo = open(argv[1], O_RDONLY);
    return read(fifo, &byte, 1) == 0 ? 3 : 1;
  }
  fifo = open(argv[1], O_WRONLY);
  sem_init(&ready, 0, 0);
  if (pthread_create(&thread, NULL, last_thread, NULL) != 0) return 1;
  sem_wait(&ready);
  syscall(SYS_exit, 0);
  return 1;
}
