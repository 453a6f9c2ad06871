// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace khoro::benchmark {

/// Memory of this process alone, or such as khoroMemAlloc allocates.
enum class Kind { of_process, of_khoro };

/// Page-aligned memory with a guard of 64 bytes before and after what a call uses.
class Buffer {
 public:
  /// Touches every page, so that it lies where its thread runs. Throws std::bad_alloc.
  Buffer(std::size_t bytes, Kind kind)
      : bytes_(bytes + 2 * page), memory_(allocate(bytes_, kind), Free{kind}) {
    prepare(bytes);
  }

  std::byte* data() noexcept { return memory_.get() + page; }
  /// All of it, guards included.
  void* memory() noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

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

  static std::byte* allocate(std::size_t bytes, Kind kind) {
    if (kind == Kind::of_process)
      return static_cast<std::byte*>(::operator new(bytes, std::align_val_t(page)));
    void* memory = nullptr;
    if (khoroMemAlloc(&memory, bytes) != khoroSuccess) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
  struct Free {
    Kind kind;
    void operator()(std::byte* memory) const noexcept {
      if (kind == Kind::of_process)
        ::operator delete(memory, std::align_val_t(page));
      else
        (void)khoroMemFree(memory);
    }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace khoro::benchmark
