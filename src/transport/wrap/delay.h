// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/doorbell.h"
#include "base/system.h"
#include "transport/transport.h"

namespace khoro {

struct DelaySetup {
  /// Whose time passes. Outlives the transport.
  System& system;
  /// Of the rank that uses the transport. Nobody rings when a delay is over, so whoever looks for a
  /// thing that is still held back is rung at once and does not fall asleep.
  Doorbell own;
  /// Draws every delay, evenly from nothing to `longest`.
  std::uint64_t seed = 0;
  Duration longest{0};
};

/// Lets everything that comes from a peer be seen late: messages, credits, releases and windows,
/// each by its own draw. The order within a channel stays; that between channels does not.
std::unique_ptr<Transport> make_delay(std::unique_ptr<Transport> inner, const DelaySetup& setup);

}  // namespace khoro
