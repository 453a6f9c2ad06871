// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/settings.h"
#include "executor/execution.h"
#include "transport/registry.h"

namespace khoro {

/// The transport of all ranks of a communicator, which is what they all set.
const TransportRow& transport_of(const Settings& settings);

[[noreturn]] void refuse_slots(std::uint64_t most, int ranks, const char* who,
                               std::uint64_t needed);
/// Narrows slots until what channels need, a function of their width, fits KHORO_BUFFER_BYTES.
/// Throws invalid_argument if they cannot be so narrow; `who` have the channels, for words:
/// "ranks".
template <class Needed>
void fit_slots(std::uint32_t& slot_bytes, const Settings& settings, int ranks, const char* who,
               Needed needed) {
  constexpr std::uint32_t least = 4096, step = 4096;
  const auto most = static_cast<std::uint64_t>(settings.buffer_bytes);
  while (needed() > most && slot_bytes > least) slot_bytes -= std::min(slot_bytes - least, step);
  if (needed() > most && ranks > 1) refuse_slots(most, ranks, who, needed());
}

/// The shape of every channel of a communicator: as the settings say, but with narrower slots where
/// the channels of `ranks` ranks would else hold more than KHORO_BUFFER_BYTES. Throws
/// invalid_argument if they cannot be so narrow.
ChannelShape shape_of(const Settings& settings, int ranks);
/// How much of a rank's shared memory is for its channels.
std::uint64_t channel_bytes(const Settings& settings, int ranks);

/// The open ends of one rank's channels, by peer and index. Opens an end when it is first asked for
/// and keeps it. Borrows the transport. Thread-compatible.
class ChannelTable final : public Ends {
 public:
  ChannelTable(Transport& transport, ChannelShape shape) : transport_(transport), shape_(shape) {}

  Sender& sender(int peer, std::uint8_t index) override;
  Receiver& receiver(int peer, std::uint8_t index) override;

 private:
  using Name = std::pair<int, std::uint8_t>;
  Transport& transport_;
  ChannelShape shape_;
  std::map<Name, std::unique_ptr<Sender>> senders_;
  std::map<Name, std::unique_ptr<Receiver>> receivers_;
};

}  // namespace khoro
