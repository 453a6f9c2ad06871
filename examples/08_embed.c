/* SPDX-License-Identifier: Apache-2.0 */
/* Khoro inside a program that has processes, sockets and a log of its own: the ranks find each
 * other over its sockets, and when one of them dies the others hear why and go on. Run it: 08_embed
 */
#define _GNU_SOURCE
#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ranks = 4, doomed = 2 };

/* What the program has anyway: a socket from its first process to each other one. */
struct place {
  int rank;
  int peers[ranks]; /* elsewhere than at rank 0 the first one is the way to rank 0 */
};

static int send_all(int socket, const void* data, size_t bytes) {
  return send(socket, data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static int recv_all(int socket, void* data, size_t bytes) {
  return recv(socket, data, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* quote: begin join */
/* Rank 0 collects what the ranks give, and gives it to all of them. */
static khoroResult_t exchange(void* context, const void* mine, void* all, size_t bytes) {
  const struct place* place = context;
  if (place->rank != 0)
    return send_all(place->peers[0], mine, bytes) && recv_all(place->peers[0], all, ranks * bytes)
               ? khoroSuccess
               : khoroSystemError;
  memcpy(all, mine, bytes);
  for (int r = 1; r < ranks; ++r)
    if (!recv_all(place->peers[r], (char*)all + (size_t)r * bytes, bytes)) return khoroSystemError;
  for (int r = 1; r < ranks; ++r)
    if (!send_all(place->peers[r], all, ranks * bytes)) return khoroSystemError;
  return khoroSuccess;
}

static khoroResult_t join(khoroComm_t* comm, struct place* place) {
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = "KHORO_DEADLINE=20s"; /* no call takes longer, whatever happens */
  return khoroCommInitOver(comm, ranks, place->rank, exchange, place, &config);
}
/* quote: end */

static void write_log(void* program, int level, const char* line) {
  static const char* const levels[] = {"", "error", "warning", "info", "trace"};
  fprintf(stderr, "%s: %s: %s\n", (const char*)program, levels[level], line);
}

static void stop(const char* what, khoroComm_t comm) {
  fprintf(stderr, "%s: %s\n", what, khoroGetLastError(comm));
  exit(1);
}

/* quote: begin work */
/* Sums until one of the ranks is no more. An error of the arguments leaves the communicator as it
 * was; every other one ends its use, on all ranks. */
static khoroResult_t work(khoroComm_t comm, int rank) {
  for (int step = 0; step < 1000; ++step) {
    if (rank == doomed && step == 100) _exit(1);
    float values[3] = {1, 2, 3};
    const khoroResult_t result =
        khoroAllReduce(values, values, 3, khoroFloat32, khoroSum, comm, NULL);
    if (result != khoroSuccess) return result;
  }
  return khoroSuccess;
}

static void run(struct place* place) {
  khoroComm_t comm;
  khoroSetLogCallback(write_log, "embed");
  if (join(&comm, place) != khoroSuccess) stop("no communicator", NULL);
  const khoroResult_t result = work(comm, place->rank);
  if (result != khoroPeerDied) stop("it should not end like this", comm);
  printf("rank %d goes on: %s\n", place->rank, khoroGetErrorString(result));
  if (khoroCommDestroy(comm) != khoroSuccess) stop("not destroyed", NULL);
}
/* quote: end */

/* Makes the other processes, before anything of Khoro's is used: a child of a process that uses it
 * cannot. */
int main(void) {
  struct place place = {0, {-1, -1, -1, -1}};
  for (int r = 1; r < ranks; ++r) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      for (int other = 1; other < r; ++other) close(place.peers[other]);
      place = (struct place){r, {ends[1], -1, -1, -1}};
      close(ends[0]);
      run(&place);
      return 0;
    }
    close(ends[1]);
    place.peers[r] = ends[0];
  }
  run(&place);
  for (int r = 1; r < ranks; ++r) wait(NULL);
  return 0;
}
