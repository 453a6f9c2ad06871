// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/hash.h"

namespace khoro::virtual_gpu {

/// Delays threads at random: mostly not, sometimes by giving way a few times, rarely for longer
/// than others take for all they do. The same seed chooses the same for the same place.
class Delays {
 public:
  Delays() = default;
  explicit Delays(std::uint64_t seed) noexcept : seed_(seed) {}

  /// Those of a part of what this is for.
  Delays of(std::uint64_t part) const noexcept {
    return Delays(seed_ == 0 ? 0 : combine(seed_, part) | 1u);
  }
  explicit operator bool() const noexcept { return seed_ != 0; }
  void at(std::uint64_t place) const noexcept {
    if (!asked(place)) return;
    const std::uint64_t choice = combine(seed_, place);
    if (choice % 512 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50 + choice / 512 % 200));
    else
      for (std::uint64_t left = 1 + choice / 512 % 8; left > 0; --left) std::this_thread::yield();
  }
  /// Whether who comes to that place is delayed.
  bool asked(std::uint64_t place) const noexcept {
    return seed_ != 0 && combine(seed_, place) % 8 == 0;
  }

 private:
  std::uint64_t seed_ = 0;
};

}  // namespace khoro::virtual_gpu
