// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "base/descriptor.h"
#include "base/interfaces.h"

namespace khoro {

/// Where a rank waits for the stripes of others.
struct Listener {
  Descriptor socket;  // non-blocking
  SocketAddress address;
};

/// Listens on an address of this machine that can be reached, for what the settings
/// KHORO_SOCKET_IFNAME and KHORO_SOCKET_FAMILY say: usable_interfaces(), and of these the first
/// that answers when it is called. Throws `Error`, naming the setting and what is there.
Listener listen_for_stripes(std::string_view interfaces, std::string_view family);

/// A stream socket that has begun to connect: when it is writable it has, or failed. Non-blocking.
/// Throws system_error, naming the address.
Descriptor dial(const SocketAddress& address);

/// Makes a connected socket fit to be a stripe. Throws system_error.
void tune(const Descriptor& socket);

/// A stripe between two ranks of this process: the end that dialled first. Throws `Error`.
std::array<Descriptor, 2> connect_within(const Listener& listener);

}  // namespace khoro
