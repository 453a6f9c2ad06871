// SPDX-License-Identifier: Apache-2.0
#include "base/packet_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace khoro {
namespace {

constexpr std::size_t most_descriptors = 253;  // SCM_MAX_FD of the kernel
constexpr int flags = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct Address {
  sockaddr_un name{};
  socklen_t length;

  explicit Address(const std::string& text) {
    if (text.empty() || text.size() >= sizeof name.sun_path)
      throw Error(Code::internal_error, fmt::format("socket name '{}' does not fit", text));
    name.sun_family = AF_UNIX;
    // The zero byte in front makes the name an abstract one.
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(most_descriptors * sizeof(int))];
};

Descriptor open_socket() {
  Descriptor socket(::socket(AF_UNIX, flags, 0));
  if (!socket) throw_errno("cannot open a unix socket");
  return socket;
}

PacketStatus status_of(int cause) noexcept {
  switch (cause) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
      return PacketStatus::again;
    case ETOOMANYREFS:
    case EMFILE:
    case ENFILE:
      return PacketStatus::exhausted;
    default:
      return PacketStatus::closed;
  }
}

/// Takes ownership of every descriptor that came with a message.
void collect(msghdr& message, std::vector<Descriptor>& descriptors) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
      descriptors.emplace_back(number);
    }
  }
}

}  // namespace

void name_socket(const Descriptor& socket, const std::string& name) {
  const Address address(name);
  if (::bind(socket.number(), address.get(), address.length) != 0)
    throw_errno(fmt::format("cannot bind the abstract unix socket @{}", name));
}

std::string name_of_peer(int socket) {
  sockaddr_un name{};
  socklen_t length = sizeof name;
  constexpr std::size_t begin = offsetof(sockaddr_un, sun_path) + 1;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0 ||
      name.sun_family != AF_UNIX || length <= begin)
    return {};
  return std::string(name.sun_path + 1, length - begin);
}

Descriptor listen_on(const std::string& name) {
  Descriptor socket = open_socket();
  name_socket(socket, name);
  if (::listen(socket.number(), SOMAXCONN) != 0)
    throw_errno(fmt::format("cannot listen on the abstract unix socket @{}", name));
  return socket;
}

Descriptor connect_to(const std::string& name) {
  Address address(name);
  Descriptor socket = open_socket();
  while (::connect(socket.number(), address.get(), address.length) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED || errno == EAGAIN) return Descriptor();
    throw_errno(fmt::format("cannot connect to the abstract unix socket @{}", name));
  }
  return socket;
}

Accepted accept_from(const Descriptor& listener) noexcept {
  for (;;) {
    Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) return {std::move(socket), false};
    if (errno == EINTR || errno == ECONNABORTED) continue;
    return {Descriptor(), errno != EAGAIN};
  }
}

std::optional<Credentials> peer_of(const Descriptor& socket) noexcept {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {};
  return Credentials{peer.pid, peer.uid};
}

PacketStatus send_packet(const Descriptor& socket, std::span<const std::byte> bytes,
                         std::span<const int> descriptors) noexcept {
  if (descriptors.size() > most_descriptors) return PacketStatus::malformed;
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  if (!descriptors.empty()) {
    std::size_t size = descriptors.size_bytes();
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), size);
  }
  while (::sendmsg(socket.number(), &message, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) return status_of(errno);
  return PacketStatus::done;
}

PacketStatus receive_packet(const Descriptor& socket, std::span<std::byte> bytes,
                            std::vector<Descriptor>& descriptors, std::size_t most) noexcept {
  if (most > most_descriptors) return PacketStatus::malformed;
  // No memory: the packet stays where it is.
  try {
    descriptors.reserve(descriptors.size() + most);
  } catch (...) {
    return PacketStatus::exhausted;
  }
  iovec part{bytes.data(), bytes.size()};
  ControlBuffer control{};
  msghdr message;
  ssize_t received;
  bool reset = false, ended = false;
  for (;;) {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (most > 0) {
      message.msg_control = control.bytes;
      // Not CMSG_SPACE: its padding would let one more descriptor in.
      message.msg_controllen = CMSG_LEN(most * sizeof(int));
    }
    received = ::recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
    if (received > 0) break;
    if (received == 0) {
      // Also said where a packet came, and then the end, after the kernel looked for packets and
      // before it looked for the end.
      if (ended) break;
      ended = true;
    } else if (errno == ECONNRESET && !reset) {
      // Said once where the other end closed with packets unread; what it had sent is still there.
      reset = true;
    } else if (errno != EINTR) {
      return status_of(errno);
    }
  }
  collect(message, descriptors);
  if (received == 0) return PacketStatus::closed;
  if (static_cast<std::size_t>(received) != bytes.size() || (message.msg_flags & MSG_TRUNC))
    return PacketStatus::malformed;
  return (message.msg_flags & MSG_CTRUNC) ? PacketStatus::exhausted : PacketStatus::done;
}

}  // namespace khoro
