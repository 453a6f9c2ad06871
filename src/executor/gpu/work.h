// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "executor/gpu/call.h"

namespace khoro::gpu {

/// What the kernel is given: a call, whose lanes are its blocks.
struct Work {
  Call call;
};
static_assert(std::is_trivially_copyable_v<Work> && sizeof(Work) <= 4096);

inline constexpr const char* kernel_name = "khoro_run_lanes";
inline constexpr int threads_of_block = 512;

}  // namespace khoro::gpu
