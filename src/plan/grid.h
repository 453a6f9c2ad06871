// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/collective.h"
#include "plan/cuts.h"
#include "plan/weights.h"

namespace khoro {

/// That of a rank, where each has one; or the only one.
inline const Block& block_of(const std::vector<Block>& blocks, int rank) noexcept {
  return blocks[blocks.size() > 1 ? static_cast<std::size_t>(rank) : 0];
}

/// The blocks of a call whose blocks are not equally long: Collective::input_blocks() and
/// output_blocks() of them.
struct Blocks {
  std::vector<Block> input;
  std::vector<Block> output;
  /// A rank knows its own alone: those that it sends, and those that it receives.
  bool local = false;
};

/// Where the chunks of a call lie, in elements: the whole vector cut into blocks, tiles and chunks.
///
/// A block is the whole vector, or one of its Collective::blocks(), of `count` elements. A tile
/// takes the same sub-range of every block; within it each block's chunks are cut at multiples of
/// 128 bytes, as evenly as that allows, or by the weights of the plan. Chunks may be empty. The
/// number of tiles depends only on what all ranks know alike; a call of count 0 has none, a barrier
/// one. Where blocks are local each has tiles of its own, and the call those of the longest.
class Grid {
 public:
  struct Request {
    Collective collective;
    int chunks = 1;                  // of the whole vector
    std::size_t count = 0;           // elements, as the caller gave it
    std::size_t element_bytes = 1;   // of the dtype
    std::size_t chunk_limit = 1;     // most elements of one chunk in one tile, at least 1
    const Blocks* blocks = nullptr;  // in place of the count; borrowed as long as the grid is used
    const Weights* weights = nullptr;  // null or empty: chunks are alike; borrowed, too
  };
  using Piece = Block;

  Grid() = default;
  explicit Grid(const Request& request) noexcept;

  std::size_t tiles() const noexcept { return tiles_; }
  /// Of a block that may be of any length; an empty one has a tile, of empty messages.
  std::size_t tiles_of(const Block& block) const noexcept;
  Piece piece(Buffer buffer, int chunk, std::size_t tile) const noexcept {
    return cuts_.piece(buffer, chunk, tile);
  }
  /// What piece() looks up.
  const Cuts& cuts() const noexcept { return cuts_; }

 private:
  /// The most granules of a block of which no part has more than `limit`.
  std::size_t most_granules(std::size_t limit, const Weights& weights) const noexcept;
  std::size_t tiles_of_blocks(const Blocks& blocks) const noexcept;

  Cuts cuts_;
  std::size_t tiles_ = 1;
};

}  // namespace khoro
