// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "transport/transport.h"

namespace khoro {

/// When the ranks of a process die: after so many events of their channels, which are messages
/// published, observed and released, and windows offered, or when somebody says so. Used by one
/// thread at a time.
class Fate {
 public:
  /// `at_death` is called once, at the moment itself; the code that drives the ends need not go on
  /// from there.
  explicit Fate(std::uint64_t events, std::function<void()> at_death = {})
      : left_(events), at_death_(std::move(at_death)) {}

  bool dead() const noexcept { return dead_; }
  void die() noexcept {
    if (std::exchange(dead_, true) || !at_death_) return;
    at_death_();
  }
  /// Counts an event that is about to happen; false if death came before it.
  bool live_on() noexcept {
    if (left_ == 0) die();
    if (!dead_) --left_;
    return !dead_;
  }
  /// Events that are left to live through.
  std::uint64_t left() const noexcept { return left_; }

 private:
  std::uint64_t left_;
  bool dead_ = false;
  std::function<void()> at_death_;
};

/// Silences all ends of a rank from its death on: nothing is seen by it, and nothing that it does
/// is seen by anybody. `fate`, which the ranks of a process share, outlives the transport.
std::unique_ptr<Transport> make_death(std::unique_ptr<Transport> inner, Fate& fate);

}  // namespace khoro
