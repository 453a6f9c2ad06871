// SPDX-License-Identifier: Apache-2.0
#include "transport/registry.h"

#include <algorithm>

#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"

namespace khoro {
namespace {

constexpr TransportRow rows[] = {
    {"shm", make_shm},
    {"tcp", make_tcp, true},
};

}  // namespace

std::span<const TransportRow> transports() noexcept { return rows; }

const TransportRow* find_transport(std::string_view name) noexcept {
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [name](const TransportRow& each) { return each.name == name; });
  return row == std::end(rows) ? nullptr : row;
}

}  // namespace khoro
