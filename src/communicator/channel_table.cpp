// SPDX-License-Identifier: Apache-2.0
#include "communicator/channel_table.h"

#include <fmt/format.h>

#include "base/error.h"

namespace khoro {

const TransportRow& transport_of(const Settings& settings) {
  // Nobody is beyond the reach of shared memory.
  if (settings.transport == "auto") return transports().front();
  const TransportRow* const row = find_transport(settings.transport);
  if (row == nullptr)
    throw Error(Code::internal_error,
                fmt::format("there is no transport '{}'", settings.transport));
  return *row;
}

ChannelShape shape_of(const Settings& settings) {
  const auto bytes = static_cast<std::uint32_t>(settings.slot_bytes);
  return {static_cast<std::uint32_t>(settings.slots),
          transport_of(settings).uses_sockets ? 2 * bytes : bytes};
}

Sender& ChannelTable::sender(int peer, std::uint8_t index) {
  auto& end = senders_[{peer, index}];
  if (!end) end = transport_.open_sender({peer, index}, shape_);
  return *end;
}

Receiver& ChannelTable::receiver(int peer, std::uint8_t index) {
  auto& end = receivers_[{peer, index}];
  if (!end) end = transport_.open_receiver({peer, index}, shape_);
  return *end;
}

}  // namespace khoro
