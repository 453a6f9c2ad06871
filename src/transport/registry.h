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
};

/// All transports, the fastest first. Adding one means adding one line here.
std::span<const TransportRow> transports() noexcept;

/// The row of that name, or null.
const TransportRow* find_transport(std::string_view name) noexcept;

}  // namespace khoro
