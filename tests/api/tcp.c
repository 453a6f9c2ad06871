/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of one machine over TCP: what settings choose, refuse and count, and that nothing is lost
 * when a rank leaves. */
#include "collective_cases.h"

#include <stddef.h>
#include <sys/socket.h>

static int inet_sockets(void) {
  int count = 0;
  for (int descriptor = 0; descriptor < 4096; ++descriptor) {
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0)
      count += domain == AF_INET || domain == AF_INET6;
  }
  return count;
}

static void stripes_are_counted(khoroComm_t comm, int rank, int ranks) {
  const khoroStatistics_t fresh = statistics_of(comm);
  CHECK(strcmp(fresh.transports, "tcp") == 0);
  CHECK(fresh.stripes == 3 && fresh.bytesSent == 0);
  allreduce_case(comm, rank, ranks, khoroFloat32, khoroSum, 1);
  const khoroStatistics_t small = statistics_of(comm);
  CHECK(small.stripeBytes[0] > 0 && small.stripeBytes[1] == 0); /* too small to be cut */
  allreduce_case(comm, rank, ranks, khoroFloat32, khoroSum, 1 << 20);
  const khoroStatistics_t now = statistics_of(comm);
  uint64_t all = 0;
  for (int i = 0; i < 16; ++i) all += now.stripeBytes[i];
  CHECK(all == now.bytesSent);
  for (uint64_t i = 0; i < 3; ++i) CHECK(now.stripeBytes[i] > 1 << 18);
  CHECK(now.stripeBytes[3] == 0);
  /* A program that was built before there were stripes. */
  khoroStatistics_t old;
  memset(&old, 0x5a, sizeof old);
  old.size = offsetof(khoroStatistics_t, stripes);
  OK(khoroCommQuery(comm, &old));
  CHECK(old.bytesSent == now.bytesSent && old.stripes == 0x5a5a5a5a5a5a5a5a);
}

static void is_right(khoroComm_t comm, int rank, int ranks) {
  CHECK(inet_sockets() > 0);
  for (size_t count = 1; count < 1 << 20; count = count * 5 + 1)
    allreduce_case(comm, rank, ranks, khoroFloat32, khoroSum, count);
}

static void needs_no_socket(khoroComm_t comm, int rank, int ranks) {
  allreduce_case(comm, rank, ranks, khoroFloat32, khoroSum, 100);
  CHECK(inet_sockets() == 0);
  CHECK(statistics_of(comm).stripes == 0);
}

/* The sender has left, and its process has ended, before the receiver looks. */
static void nothing_is_lost(khoroComm_t comm, int rank, int ranks) {
  enum { count = 1 << 18 };
  (void)ranks;
  char* data = calloc(count, 1);
  if (rank == 0) {
    for (int i = 0; i < count; ++i) data[i] = (char)(i * 7);
    OK(khoroSend(data, count, khoroInt8, 1, comm, NULL));
  } else {
    sleep_ms(300);
    OK(khoroRecv(data, count, khoroInt8, 0, comm, NULL));
    for (int i = 0; i < count; ++i) CHECK(data[i] == (char)(i * 7));
  }
  free(data);
}

static void init_refuses(const char* name, const char* value, const char* words) {
  khoroComm_t none[2] = {NULL, NULL};
  setenv(name, value, 1);
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitAllHost(none, 2));
  CHECK(!none[0] && !none[1]);
  CHECK_WORDS(name);
  CHECK_WORDS(value);
  CHECK_WORDS(words);
  unsetenv(name);
}

static void names_that_do_not_exist(void) {
  static const char* const names[] = {"eth99", ",", "^", "=l", "^lo,e,w,d,v,b,t,s,i"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    init_refuses("KHORO_SOCKET_IFNAME", names[i], "lo (127.0.0.1)");
  init_refuses("KHORO_TRANSPORT", "udp", "one of auto, shm, tcp");
  init_refuses("KHORO_TCP_STRIPES", "17", "1 to 16");
  init_refuses("KHORO_SOCKET_FAMILY", "ipv5", "one of auto, ipv4, ipv6");
}

int main(void) {
  run_processes(3, needs_no_socket); /* processes first: this one has not used Khoro yet */
  setenv("KHORO_TRANSPORT", "tcp", 1);
  setenv("KHORO_TCP_STRIPES", "3", 1);
  run_processes(2, stripes_are_counted);
  run_processes(2, nothing_is_lost);
  run_processes(5, is_right);
  setenv("KHORO_SOCKET_FAMILY", "ipv6", 1);
  run_processes(2, is_right);
  run_threads(3, is_right);
  setenv("KHORO_SOCKET_FAMILY", "ipv4", 1);
  setenv("KHORO_SOCKET_IFNAME", "=lo", 1);
  run_threads(4, is_right);
  unsetenv("KHORO_SOCKET_FAMILY");
  unsetenv("KHORO_SOCKET_IFNAME");
  run_threads(3, stripes_are_counted);
  names_that_do_not_exist();
  unsetenv("KHORO_TRANSPORT");
  names_that_do_not_exist(); /* nor when they are not needed */
  setenv("KHORO_TRANSPORT", "shm", 1);
  run_threads(2, needs_no_socket);
  return 0;
}
