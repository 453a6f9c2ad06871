// SPDX-License-Identifier: Apache-2.0
#include "communicator/channel_table.h"

namespace khoro {

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
