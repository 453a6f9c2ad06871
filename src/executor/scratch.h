// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/aligned.h"

namespace khoro {

/// Memory for partial results, which grows between calls and is shared by executions of which one
/// runs at a time. Thread-compatible, but for bytes().
class Scratch {
 public:
  /// So many bytes at least; what was there is lost if there were fewer. Throws out_of_memory.
  std::byte* at_least(std::size_t bytes);
  /// For statistics: any thread.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  AlignedBytes memory_;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace khoro
