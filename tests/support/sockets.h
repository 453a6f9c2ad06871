// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <mutex>

#include "base/descriptor.h"
#include "base/error.h"

namespace khoro::test {

/// Two ends of a TCP connection over the loopback. All of a process come from one listener: ports
/// of connections that have ended stay taken for a minute, for who wants a new one to listen at.
inline std::array<Descriptor, 2> socket_pair() {
  const auto stream = [] {
    Descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!made) throw_errno("no socket for a test");
    return made;
  };
  static const Descriptor listener = stream();
  static std::mutex mutex;
  static sockaddr_in address{};
  static socklen_t length = sizeof address;
  const std::lock_guard lock(mutex);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (address.sin_port == 0) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener.number(), any, length) != 0 || ::listen(listener.number(), 1) != 0 ||
        ::getsockname(listener.number(), any, &length) != 0)
      throw_errno("no listener for a test");
  }
  std::array<Descriptor, 2> ends = {stream(), Descriptor()};
  if (::connect(ends[0].number(), any, length) != 0) throw_errno("no connection for a test");
  ends[1] = Descriptor(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
  const int one = 1;
  for (const Descriptor& end : ends)
    if (::setsockopt(end.number(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
      throw_errno("no connection for a test");
  return ends;
}

}  // namespace khoro::test
