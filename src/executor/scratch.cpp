// SPDX-License-Identifier: Apache-2.0
#include "executor/scratch.h"

#include <fmt/format.h>

#include "base/error.h"

namespace khoro {

std::byte* Scratch::at_least(std::size_t bytes) {
  if (bytes <= this->bytes()) return memory_.get();
  // The old goes first: both would not be needed.
  memory_.reset();
  bytes_.store(0, std::memory_order_relaxed);
  memory_ = allocate_aligned(bytes);
  if (!memory_)
    throw Error(Code::out_of_memory, fmt::format("{} bytes for partial results", bytes));
  bytes_.store(bytes, std::memory_order_relaxed);
  return memory_.get();
}

}  // namespace khoro
