// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "transport/transport.h"

namespace khoro {

/// One call of an end that came to something. Polls in vain are not events.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    open_sender,
    open_receiver,
    acquire,  // once per message
    publish,
    publish_reference,
    publish_put,
    window,   // seen for the first time
    observe,  // once per message
    mismatch,
    corrupt,
    release,
    offer,
  };
  Kind kind;
  ChannelName channel;
  std::uint64_t number = 0;  // of the message, or of the window
  std::uint64_t bytes = 0;

  friend bool operator==(const TraceEvent& a, const TraceEvent& b) noexcept {
    return a.kind == b.kind && a.channel.peer == b.channel.peer &&
           a.channel.index == b.channel.index && a.number == b.number && a.bytes == b.bytes;
  }
};

/// Called on the thread of the call, in order. Does not throw.
using TraceSink = std::function<void(const TraceEvent&)>;

/// Tells `sink` of every event of the ends that the transport opens.
std::unique_ptr<Transport> make_trace(std::unique_ptr<Transport> inner, TraceSink sink);

}  // namespace khoro
