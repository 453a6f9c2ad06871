// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace khoro {

/// When a rank dies: after so many events, which are messages published, observed and released, and
/// windows offered. Used by one thread at a time.
class Fate {
 public:
  explicit Fate(std::uint64_t events) : left_(events) {}

  bool dead() const noexcept { return dead_; }
  /// Counts an event that is about to happen; false if the rank died before it.
  bool live_on() noexcept {
    if (left_ == 0) dead_ = true;
    if (!dead_) --left_;
    return !dead_;
  }

 private:
  std::uint64_t left_;
  bool dead_ = false;
};

/// Silences all ends of a rank from its death on: nothing is seen by it, and nothing that it does
/// is seen by anybody. The code that drives the ends runs on, so that one thread can go on playing
/// all ranks. `fate` outlives the transport.
std::unique_ptr<Transport> make_death(std::unique_ptr<Transport> inner, Fate& fate);

}  // namespace khoro
