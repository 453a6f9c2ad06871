// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace khoro {
namespace {

/// How long the probe of an address waits for itself.
constexpr int probe_ms = 1'000;

/// An address as the system wants it.
struct Native {
  sockaddr_storage storage{};
  socklen_t length = 0;

  Native() : length(sizeof storage) {}
  explicit Native(const SocketAddress& address) {
    if (address.family == SocketAddress::ipv4) {
      sockaddr_in in{};
      in.sin_family = AF_INET;
      in.sin_port = htons(address.port);
      std::memcpy(&in.sin_addr, address.bytes.data(), sizeof in.sin_addr);
      set(in);
    } else {
      sockaddr_in6 in{};
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(address.port);
      in.sin6_scope_id = address.scope;
      std::memcpy(&in.sin6_addr, address.bytes.data(), sizeof in.sin6_addr);
      set(in);
    }
  }
  template <class In>
  void set(const In& in) {
    std::memcpy(&storage, &in, sizeof in);
    length = sizeof in;
  }
  sockaddr* any() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  std::uint16_t port() const noexcept {
    sockaddr_in in;
    std::memcpy(&in, &storage, sizeof in);  // the port of both families lies there
    return ntohs(in.sin_port);
  }
  friend bool operator==(const Native& a, const Native& b) noexcept {
    return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

Descriptor stream_socket(const SocketAddress& address) {
  const int family = address.family == SocketAddress::ipv4 ? AF_INET : AF_INET6;
  Descriptor made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) throw_errno("cannot make a socket for a stripe (if too many are open: ulimit -n)");
  return made;
}

Listener listen_at(SocketAddress address) {
  Listener listener{stream_socket(address), address};
  Native native(address);
  const int number = listener.socket.number();
  if (::bind(number, native.any(), native.length) != 0 || ::listen(number, SOMAXCONN) != 0 ||
      ::getsockname(number, native.any(), &native.length) != 0)
    throw_errno("cannot listen");
  listener.address.port = native.port();
  return listener;
}

bool is_readable(const Descriptor& socket) noexcept {
  pollfd polled{socket.number(), POLLIN, 0};
  return ::poll(&polled, 1, probe_ms) == 1;
}

}  // namespace

Descriptor dial(const SocketAddress& address) {
  Descriptor socket = stream_socket(address);
  Native native(address);
  if (::connect(socket.number(), native.any(), native.length) != 0 && errno != EINPROGRESS)
    throw_errno(fmt::format("cannot connect to {}", address.text()));
  return socket;
}

void tune(const Descriptor& socket) {
  const int one = 1;
  if (::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
    throw_errno("cannot set up a stripe");
}

std::array<Descriptor, 2> connect_within(const Listener& listener) {
  Descriptor dialled = dial(listener.address);
  Native mine;
  if (::getsockname(dialled.number(), mine.any(), &mine.length) != 0)
    throw_errno("cannot connect two ranks of this process");
  while (is_readable(listener.socket)) {
    Native theirs;
    Descriptor accepted(::accept4(listener.socket.number(), theirs.any(), &theirs.length,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted && errno != EAGAIN && errno != ECONNABORTED)
      throw_errno("cannot connect two ranks of this process");
    if (!accepted || !(theirs == mine)) continue;  // a stranger
    tune(dialled);
    tune(accepted);
    return {std::move(dialled), std::move(accepted)};
  }
  throw Error(Code::system_error,
              fmt::format("nobody answers at {}, where this process listens; check its firewall",
                          listener.address.text()));
}

Listener listen_for_stripes(std::string_view interfaces, std::string_view family) {
  std::string reasons;
  for (const Interface& each : usable_interfaces(interfaces_present(), interfaces, family)) {
    try {
      Listener listener = listen_at(each.address);
      connect_within(listener);
      return listener;
    } catch (const Error& error) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", each.name, error.what());
    }
  }
  throw Error(Code::system_error,
              fmt::format("no interface can be used for sockets between ranks; name another one in "
                          "KHORO_SOCKET_IFNAME ({})",
                          reasons));
}

}  // namespace khoro
