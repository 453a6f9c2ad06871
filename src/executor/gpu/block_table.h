// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/gpu/call.h"
#include "plan/grid.h"
#include "plan/image.h"

namespace khoro::gpu {

/// What a kernel reads of the blocks of a call that are unequal: bytes for a place that it reaches.
/// A value; empty where blocks are equal.
class BlockTable {
 public:
  BlockTable() = default;
  /// The grid is that of the blocks.
  BlockTable(const Image& image, const Blocks& blocks, const Grid& grid);

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// Has the call look for them at `at`, as kernels see it, at a multiple of 8.
  void place(Call& call, const std::byte* at) const noexcept;

 private:
  template <class T>
  std::size_t add(const std::vector<T>& values);

  std::vector<std::byte> bytes_;
  bool local_ = false;
  // Offsets.
  std::size_t input_ = 0, output_ = 0, tiles_of_stage_ = 0, salts_ = 0;
};

}  // namespace khoro::gpu
