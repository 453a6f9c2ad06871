// SPDX-License-Identifier: Apache-2.0
#include "executor/scratch.h"

#include <fmt/format.h>

#include <new>

#include "base/error.h"

namespace khoro {

void Scratch::Freed::operator()(std::byte* data) const noexcept {
  ::operator delete[](data, std::align_val_t{alignment});
}

std::byte* Scratch::at_least(std::size_t bytes) {
  if (bytes <= this->bytes()) return memory_.get();
  // The old goes first: both would not be needed.
  memory_.reset();
  bytes_.store(0, std::memory_order_relaxed);
  auto* memory = new (std::align_val_t{alignment}, std::nothrow) std::byte[bytes];
  if (memory == nullptr)
    throw Error(Code::out_of_memory, fmt::format("{} bytes for partial results", bytes));
  memory_.reset(memory);
  bytes_.store(bytes, std::memory_order_relaxed);
  return memory;
}

}  // namespace khoro
