// SPDX-License-Identifier: Apache-2.0
#include "communicator/channel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "transport/shm/shm.h"

namespace khoro {
namespace {

/// Channels to each peer that calls may open: two for the lanes of plans, two for messages.
constexpr int channels_in_use = 4;
/// How many there is room for, if the limit allows it. Memory is sparse, so what is not opened
/// costs nothing.
constexpr int channels_with_room = 16;

}  // namespace

const TransportRow& transport_of(const Settings& settings) {
  // Nobody is beyond the reach of shared memory.
  if (settings.transport == "auto") return transports().front();
  const TransportRow* const row = find_transport(settings.transport);
  if (row == nullptr)
    throw Error(Code::internal_error,
                fmt::format("there is no transport '{}'", settings.transport));
  return *row;
}

void refuse_slots(std::uint64_t most, int ranks, const char* who, std::uint64_t needed) {
  throw Error(Code::invalid_argument,
              fmt::format("KHORO_BUFFER_BYTES={}: the channels of {} {} need {} at least; set "
                          "more, or a lower KHORO_SLOTS",
                          most, ranks, who, needed));
}

ChannelShape shape_of(const Settings& settings, int ranks) {
  // Over sockets both ends have slots, and a message costs system calls, so it may be longer.
  const bool sockets = transport_of(settings).uses_sockets;
  const auto slot_bytes = static_cast<std::uint32_t>(settings.slot_bytes);
  ChannelShape shape{static_cast<std::uint32_t>(settings.slots),
                     sockets ? 3 * slot_bytes : slot_bytes};
  shape.parts_bytes = shm::parts_bytes(ranks, shape.slots);
  fit_slots(shape.slot_bytes, settings, ranks, "ranks", [&] {
    return shm::area_bytes(ranks, sockets ? 2 * channels_in_use : channels_in_use, shape);
  });
  return shape;
}

std::uint64_t channel_bytes(const Settings& settings, int ranks) {
  if (transport_of(settings).uses_sockets) return 0;
  const ChannelShape shape = shape_of(settings, ranks);
  const auto most = static_cast<std::uint64_t>(settings.buffer_bytes) / 4096 * 4096;
  return std::clamp(most, shm::area_bytes(ranks, channels_in_use, shape),
                    shm::area_bytes(ranks, channels_with_room, shape));
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
