// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace khoro {

/// Where vectors and cache lines like memory to begin.
inline constexpr std::size_t line_bytes = 64;

struct FreeAligned {
  void operator()(std::byte* memory) const noexcept {
    ::operator delete[](memory, std::align_val_t{line_bytes});
  }
};
/// Memory that begins at a line. Not zeroed, so that untouched pages cost nothing.
using AlignedBytes = std::unique_ptr<std::byte[], FreeAligned>;

/// Null if there is no memory.
inline AlignedBytes allocate_aligned(std::size_t bytes) noexcept {
  return AlignedBytes(new (std::align_val_t{line_bytes}, std::nothrow) std::byte[bytes]);
}

constexpr std::size_t to_lines(std::size_t bytes) noexcept {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

}  // namespace khoro
