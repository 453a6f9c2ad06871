// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/device.h"
#include "plan/step.h"

namespace khoro {

/// Where a block lies in its buffer, in elements.
struct Block {
  std::size_t first = 0;
  std::size_t count = 0;
  KHORO_HD std::size_t end() const noexcept { return first + count; }
  bool operator==(const Block&) const = default;
};

/// The chunks of a call as host and device look them up: what a Grid has found out. A value;
/// borrows what it points to, which a kernel must reach.
struct Cuts {
  const std::uint32_t* weights = nullptr;  // the sums before each chunk of a block; null: alike
  const Block* input = nullptr;            // where blocks are unequal
  const Block* output = nullptr;
  bool unequal = false;
  std::uint32_t parts = 1;    // chunks of a block
  std::uint32_t granule = 0;  // log2 of the elements that make 128 bytes
  std::size_t count = 0;      // elements of a block
  std::size_t chunk_limit = 1;
  std::size_t tile_length = 1;  // elements of a block in a full tile

  /// Elements of a chunk of input or output in a tile. In scratch, where what a chunk holds is
  /// known only from what was written, the piece is its room: `chunk_limit` elements from chunk *
  /// chunk_limit on.
  KHORO_HD Block piece(Buffer buffer, int chunk, std::size_t tile) const noexcept {
    const auto number = static_cast<std::uint32_t>(chunk);
    if (buffer == Buffer::scratch) return {number * chunk_limit, chunk_limit};
    const std::uint32_t part = number % parts;
    const Block block = block_of(buffer, number / parts);
    const std::size_t begin = tile * tile_length;
    if (begin >= block.count) return {};
    const std::size_t rest = block.count - begin;
    const std::size_t length = rest < tile_length ? rest : tile_length;
    const std::size_t first = cut(length, part), last = cut(length, part + 1);
    return {block.first + begin + first, last - first};
  }

 private:
  KHORO_HD Block block_of(Buffer buffer, std::uint32_t index) const noexcept {
    if (!unequal) return {index * count, count};
    return (buffer == Buffer::input ? input : output)[index];
  }
  /// Where a part of `length` elements begins.
  KHORO_HD std::size_t cut(std::size_t length, std::uint32_t part) const noexcept {
    const std::size_t whole = length >> granule;
    const std::size_t granules = whole + ((whole << granule) != length);
    const std::size_t at = cut_of_granules(granules, part) << granule;
    return at < length ? at : length;
  }
  KHORO_HD std::size_t cut_of_granules(std::size_t granules, std::uint32_t part) const noexcept {
    if (weights == nullptr) {
      // The first ones get the odd granules.
      const std::size_t odd = granules % parts;
      return part * (granules / parts) + (part < odd ? part : odd);
    }
    const std::size_t all = weights[parts], before = weights[part];
    return granules / all * before + granules % all * before / all;
  }
};
static_assert(std::is_trivially_copyable_v<Cuts>);

}  // namespace khoro
