// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace khoro::virtual_gpu {

/// Memory that runs out at a chosen time: the so many-th thing that takes some fails, and all
/// others have theirs. Thread-safe.
class Shortage {
 public:
  /// 0: nothing fails.
  explicit Shortage(std::uint64_t failure) noexcept : failure_(failure) {}

  /// Throws out_of_memory for the one that is to fail. `what` names it.
  void take(int device, const char* what) {
    if (failure_ == 0 || ++taken_ != failure_) return;
    const std::string who = device < 0 ? "virtual GPUs" : fmt::format("virtual GPU {}", device);
    log(LogLevel::warn, "{}: thing {} that takes memory fails: {}", who, failure_, what);
    throw Error(Code::out_of_memory, fmt::format("no memory left on {} for {}", who, what));
  }

 private:
  const std::uint64_t failure_;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace khoro::virtual_gpu
