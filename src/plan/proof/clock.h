// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace khoro::proof {

/// The moment at which a lane began a step: the lane's place in the clocks, and its count of steps.
struct Epoch {
  std::uint32_t lane = 0;
  std::uint32_t time = 0;  // 0: never
};

/// A vector clock: for each lane the last of its steps that is known to have ended. Empty: none is
/// known.
class Clock {
 public:
  void join(const Clock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
    for (std::size_t i = 0; i < other.times_.size(); ++i)
      times_[i] = std::max(times_[i], other.times_[i]);
  }
  void set(Epoch epoch, std::size_t lanes) {
    if (times_.size() < lanes) times_.resize(lanes);
    times_[epoch.lane] = epoch.time;
  }
  bool knows(Epoch epoch) const noexcept {
    return epoch.time == 0 || (epoch.lane < times_.size() && times_[epoch.lane] >= epoch.time);
  }

 private:
  std::vector<std::uint32_t> times_;
};

/// Who touched one chunk of memory: the last write, and the reads since then that no later one is
/// known to follow.
class History {
 public:
  /// Notes a read, and gives a write that nothing orders with it.
  std::optional<Epoch> read(Epoch now, const Clock& clock) {
    std::erase_if(reads_, [&](Epoch earlier) { return clock.knows(earlier); });
    reads_.push_back(now);
    return clock.knows(write_) ? std::nullopt : std::optional(write_);
  }
  /// Notes a write, and gives an access that nothing orders with it.
  std::optional<Epoch> write(Epoch now, const Clock& clock) {
    std::optional<Epoch> other;
    if (!clock.knows(write_)) other = write_;
    for (Epoch earlier : reads_)
      if (!clock.knows(earlier)) other = earlier;
    reads_.clear();
    write_ = now;
    return other;
  }

 private:
  Epoch write_;
  std::vector<Epoch> reads_;
};

}  // namespace khoro::proof
