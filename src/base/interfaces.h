// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace khoro {

/// Where a stream socket can be reached: of fixed size, so that it travels in frames.
struct SocketAddress {
  enum Family : std::uint16_t { none = 0, ipv4 = 4, ipv6 = 6 };

  std::uint16_t family = none;
  std::uint16_t port = 0;   // in the order of this machine
  std::uint32_t scope = 0;  // of a link-local address
  std::array<std::uint8_t, 16> bytes{};

  /// "127.0.0.1:4711", "[::1]:4711"
  std::string text() const;
  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};
static_assert(sizeof(SocketAddress) == 24);

/// An address that an interface of this machine has now. It is up.
struct Interface {
  std::string name;
  SocketAddress address;  // no port
  bool loopback = false;
};

/// As the system lists them. Throws system_error.
std::vector<Interface> interfaces_present();

/// Which addresses of `present` sockets may use, the best one first.
///
/// `names` is a list of beginnings of names, with commas between: "eth,ib"; "=" in front of the
/// whole list: of whole names, "^": all but these. Empty: any, the loopback first, which is right
/// while all ranks are on one machine. `family` is "auto", which prefers IPv4, "ipv4" or "ipv6".
/// Throws invalid_argument, naming the value and what is present, if nothing is left.
std::vector<Interface> usable_interfaces(std::span<const Interface> present, std::string_view names,
                                         std::string_view family);

}  // namespace khoro
