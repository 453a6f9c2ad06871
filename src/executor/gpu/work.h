// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "executor/gpu/call.h"

namespace khoro::gpu {

/// What the kernel is given: calls whose lanes are its blocks, in order. They end together or not
/// at all: their lanes may wait for each other.
struct Work {
  /// In memory that the device reaches; null: the one here.
  const Call* calls = nullptr;
  std::uint32_t count = 1;
  Call alone;

  /// The call of a block; `block` becomes the number of its lane.
  KHORO_HD const Call& call_of(std::uint32_t& block) const noexcept {
    if (calls == nullptr) return alone;
    const Call* call = calls;
    for (; block >= call->program.lane_count; ++call) block -= call->program.lane_count;
    return *call;
  }
};
static_assert(std::is_trivially_copyable_v<Work> && sizeof(Work) <= 4096);

inline constexpr const char* kernel_name = "khoro_run_lanes";
inline constexpr int threads_of_block = 512;

}  // namespace khoro::gpu
