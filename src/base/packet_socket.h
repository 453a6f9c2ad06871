// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace khoro {

/// Non-blocking sequenced-packet sockets in the abstract unix name space: a packet arrives whole or
/// not at all, descriptors travel with it, and nothing appears in the file system. They reach the
/// processes of one network name space.

/// Throws system_error, also when the name is taken.
Descriptor listen_on(const std::string& name);
/// Gives a socket that name, by which the other end knows it. Throws system_error.
void name_socket(const Descriptor& socket, const std::string& name);
/// The name of the other end; empty if it has none. Borrows the descriptor.
std::string name_of_peer(int socket);
/// None if nobody listens under the name (or its queue is full: try again). Throws system_error for
/// anything else.
Descriptor connect_to(const std::string& name);
/// None if nobody waits; `exhausted` tells that this process or the machine has no descriptor left.
struct Accepted {
  Descriptor socket;
  bool exhausted = false;
};
Accepted accept_from(const Descriptor& listener) noexcept;

/// Who is at the other end, as the kernel recorded it when the connection was made.
struct Credentials {
  pid_t process = 0;
  uid_t user = 0;
};
std::optional<Credentials> peer_of(const Descriptor& socket) noexcept;

enum class PacketStatus : std::uint8_t {
  done,
  again,      // the other end must read or write first
  exhausted,  // too many descriptors under way or open: try again later, or give up
  closed,     // the other end is gone
  malformed,  // a packet of another length
};

/// Sends `bytes` as one packet, with copies of `descriptors` (at most 253).
PacketStatus send_packet(const Descriptor& socket, std::span<const std::byte> bytes,
                         std::span<const int> descriptors = {}) noexcept;

/// Receives a packet of exactly `bytes.size()` bytes, and at most `most` (<= 253) descriptors with
/// it, appended to `descriptors`; what comes beyond is closed by the kernel and never enters the
/// process. `exhausted`: the packet came, but descriptors were lost because this process has none
/// left, or more than `most` were sent.
PacketStatus receive_packet(const Descriptor& socket, std::span<std::byte> bytes,
                            std::vector<Descriptor>& descriptors, std::size_t most) noexcept;

}  // namespace khoro
