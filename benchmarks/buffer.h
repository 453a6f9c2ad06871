// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace khoro::benchmark {

/// Page-aligned memory with a guard of 64 bytes before and after what a call uses.
class Buffer {
 public:
  /// Touches every page, so that it lies where its thread runs. Throws std::bad_alloc.
  explicit Buffer(std::size_t bytes)
      : memory_(static_cast<std::byte*>(::operator new(bytes + 2 * page, std::align_val_t(page)))) {
    prepare(bytes);
  }

  std::byte* data() noexcept { return memory_.get() + page; }

  /// Overwrites the first `used` bytes and the guards around them.
  void prepare(std::size_t used) noexcept {
    std::fill(data() - guard, data() + used + guard, sentinel);
  }

  /// Whether nobody wrote to the guards since prepare(used).
  bool intact(std::size_t used) noexcept {
    const std::byte* const end = data() + used;
    return first_written(data() - guard, data()) == data() &&
           first_written(end, end + guard) == end + guard;
  }

  /// The first byte that is not as prepare() left it; `last` if there is none.
  static const std::byte* first_written(const std::byte* first, const std::byte* last) noexcept {
    return std::find_if(first, last, [](std::byte byte) { return byte != sentinel; });
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t guard = 64;
  static constexpr std::byte sentinel{0xa5};

  struct Free {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete(memory, std::align_val_t(page));
    }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace khoro::benchmark
