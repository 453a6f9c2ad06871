// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/gpu/channel.h"

namespace khoro::gpu {

/// Memory of a block in which payloads wait that travel in flagged words. It is used up from the
/// front, and all free once all are given back.
class Staging {
 public:
  static constexpr std::uint32_t bytes = 16'384;

  /// `memory`: `bytes` of them, at a multiple of 16.
  KHORO_HD explicit Staging(std::byte* memory) noexcept : memory_(memory) {}

  /// Room for the end's message; false, and none, if there is too little left.
  KHORO_HD bool take(End& end) noexcept {
    const std::uint32_t size = (end.bytes + 15) / 16 * 16;
    end.staged = size <= bytes - used_;
    end.room = end.staged ? memory_ + used_ : nullptr;
    if (!end.staged) return false;
    used_ += size;
    ++count_;
    return true;
  }
  /// If it has any.
  KHORO_HD void give_back(End& end) noexcept {
    end.room = nullptr;
    if (!end.staged) return;
    end.staged = false;
    if (--count_ == 0) used_ = 0;
  }

 private:
  std::byte* memory_;
  std::uint32_t used_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace khoro::gpu
