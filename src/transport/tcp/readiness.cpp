// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/readiness.h"

#include <sys/epoll.h>

#include "base/error.h"
#include "transport/tcp/connection.h"

namespace khoro::tcp {
namespace {

/// Looks in vain, of one that is for all sockets: which costs a system call more.
constexpr unsigned looks_per_sweep = 64;
constexpr unsigned looks_per_sweep_blocked = 4;

}  // namespace

Readiness::Readiness() : set_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!set_) throw_errno("tcp: cannot make a set of sockets");
}

void Readiness::add(Connection& connection, int socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  if (::epoll_ctl(set_.number(), EPOLL_CTL_ADD, socket, &event) != 0)
    throw_errno("tcp: cannot watch a socket");
}

void Readiness::remove(int socket) noexcept {
  ::epoll_ctl(set_.number(), EPOLL_CTL_DEL, socket, nullptr);
}

void Readiness::change(Connection& connection, int socket, unsigned events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &connection;
  ::epoll_ctl(set_.number(), EPOLL_CTL_MOD, socket, &event);
}

void Readiness::blocks(Connection& connection, int socket) noexcept {
  ++blocked_;
  change(connection, socket, EPOLLIN | EPOLLOUT);
}

void Readiness::flows(Connection& connection, int socket) noexcept {
  --blocked_;
  change(connection, socket, EPOLLIN);
}

void Readiness::looked_in_vain() noexcept {
  if (++looks_ % (blocked_ > 0 ? looks_per_sweep_blocked : looks_per_sweep) == 0) sweep();
}

void Readiness::sweep() noexcept {
  epoll_event events[32];
  const int count = ::epoll_wait(set_.number(), events, 32, 0);
  for (int i = 0; i < count; ++i) {
    auto& connection = *static_cast<Connection*>(events[i].data.ptr);
    if ((events[i].events & EPOLLOUT) != 0) connection.flush();
    if ((events[i].events & ~EPOLLOUT) != 0) connection.take_in(nullptr);
  }
}

}  // namespace khoro::tcp
