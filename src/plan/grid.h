// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/collective.h"
#include "plan/step.h"

namespace khoro {

/// Where the chunks of a call lie, in elements: the whole vector cut into blocks, tiles and chunks.
///
/// A block is the whole vector, or one of its Collective::blocks(), of `count` elements. A tile
/// takes the same sub-range of every block; within it each block's chunks are cut at multiples of
/// 128 bytes, as evenly as that allows. Chunks may be empty. The number of tiles depends only on
/// what all ranks know alike; a call of count 0 has none, a barrier one.
class Grid {
 public:
  struct Request {
    Collective collective;
    int chunks = 1;                 // of the whole vector
    std::size_t count = 0;          // elements, as the caller gave it
    std::size_t element_bytes = 1;  // of the dtype
    std::size_t chunk_limit = 1;    // most elements of one chunk in one tile, at least 1
  };
  struct Piece {
    std::size_t first = 0;  // element of the buffer
    std::size_t count = 0;
  };

  Grid() = default;
  explicit Grid(const Request& request) noexcept;

  std::size_t tiles() const noexcept { return tiles_; }
  /// Elements of a chunk of input or output in a tile. In scratch, where what a chunk holds is
  /// known only from what was written, the piece is its room: `chunk_limit` elements from chunk *
  /// chunk_limit on.
  Piece piece(Buffer buffer, int chunk, std::size_t tile) const noexcept;

 private:
  int blocks_ = 1;
  int chunks_per_block_ = 1;
  std::size_t count_ = 0;    // elements of a block
  std::size_t granule_ = 1;  // elements that make 128 bytes
  std::size_t chunk_limit_ = 1;
  std::size_t tile_length_ = 1;  // elements of a block in a full tile
  std::size_t tiles_ = 1;
};

}  // namespace khoro
