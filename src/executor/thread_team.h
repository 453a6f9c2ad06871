// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <barrier>

namespace khoro {

/// One of several host threads that serve a lane together. A value, one per thread; they share a
/// barrier, which outlives them.
class ThreadTeam {
 public:
  ThreadTeam(std::barrier<>& meeting, unsigned rank, unsigned size) noexcept
      : meeting_(meeting), rank_(rank), size_(size) {}
  unsigned rank() const noexcept { return rank_; }
  unsigned size() const noexcept { return size_; }
  void sync() const noexcept { meeting_.arrive_and_wait(); }

 private:
  std::barrier<>& meeting_;
  unsigned rank_;
  unsigned size_;
};

}  // namespace khoro
