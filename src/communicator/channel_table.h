// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/settings.h"
#include "executor/execution.h"
#include "transport/registry.h"

namespace khoro {

/// The transport of all ranks of a communicator, which is what they all set.
const TransportRow& transport_of(const Settings& settings);

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
