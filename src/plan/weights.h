// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace khoro {

/// How the chunks of a block share it. Empty where they are alike.
class Weights {
 public:
  Weights() = default;
  /// One for each chunk of a block, in order.
  void add(std::uint32_t weight) {
    if (cuts_.empty()) cuts_.push_back(0);
    cuts_.push_back(cuts_.back() + weight);
    heaviest_ = std::max(heaviest_, weight);
  }

  bool empty() const noexcept { return cuts_.empty(); }
  std::size_t size() const noexcept { return empty() ? 0 : cuts_.size() - 1; }
  std::uint32_t of(std::size_t chunk) const noexcept { return cuts_[chunk + 1] - cuts_[chunk]; }
  /// Of all chunks before this one; before(size()) is the sum.
  std::uint32_t before(std::size_t chunk) const noexcept { return cuts_[chunk]; }
  /// before() of each, and of size(); null where they are alike.
  const std::uint32_t* cuts() const noexcept { return empty() ? nullptr : cuts_.data(); }
  std::uint32_t heaviest() const noexcept { return heaviest_; }
  bool operator==(const Weights&) const = default;

 private:
  std::vector<std::uint32_t> cuts_;
  std::uint32_t heaviest_ = 0;
};

}  // namespace khoro
