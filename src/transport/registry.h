// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "transport/transport.h"

namespace khoro {

struct TransportRow {
  std::string_view name;
  /// Throws `Error`.
  std::unique_ptr<Transport> (*make)(const TransportSetup& setup);
  /// It reaches no endpoint without its sockets.
  bool uses_sockets = false;
};

/// All transports, the fastest first. Adding one means adding one line here.
std::span<const TransportRow> transports() noexcept;

/// The row of that name, or null.
const TransportRow* find_transport(std::string_view name) noexcept;

}  // namespace khoro
