// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "subject.h"

namespace khoro::benchmark {

/// Memory of this process alone, or such as khoroMemAlloc allocates.
enum class Kind { of_process, of_khoro };

/// Page-aligned memory with a guard of 64 bytes before and after what a call uses. What calls use
/// is this memory, or as much of a GPU, to and from which it is copied.
class Buffer {
 public:
  /// Touches every page, so that it lies where its thread runs. Throws std::bad_alloc, Failure.
  Buffer(std::size_t bytes, Kind kind, const Gpu& gpu = {});

  std::byte* data() noexcept { return memory_.get() + page; }
  /// Where calls find what is at data().
  std::byte* in_calls() noexcept { return on_gpu_ ? on_gpu_.get() + page : data(); }
  /// All of it, guards included.
  void* memory() noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Overwrites the first `used` bytes and the guards around them.
  void prepare(std::size_t used) noexcept {
    std::fill(data() - guard, data() + used + guard, sentinel);
  }
  /// Copies as much to where calls find it, or back. Nothing is to do on hosts. Throws Failure.
  void give(std::size_t used);
  void fetch(std::size_t used);

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

  static std::byte* allocate(std::size_t bytes, Kind kind);
  void copy(std::byte* to, const std::byte* from, std::size_t used);
  struct Free {
    Kind kind;
    void operator()(std::byte* memory) const noexcept;
  };
  struct FreeOnGpu {
    void operator()(std::byte* memory) const noexcept { (void)khoroDeviceFree(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
  Gpu gpu_;
  std::unique_ptr<std::byte, FreeOnGpu> on_gpu_;
};

}  // namespace khoro::benchmark
