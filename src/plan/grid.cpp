// SPDX-License-Identifier: Apache-2.0
#include "plan/grid.h"

#include <algorithm>

namespace khoro {
namespace {

constexpr std::size_t cut_bytes = 128;

std::size_t divide_up(std::size_t a, std::size_t b) noexcept { return a / b + (a % b != 0); }

/// Where part `i` of `whole` units in `parts` begins when the first ones get the odd units.
std::size_t even_cut(std::size_t whole, std::size_t parts, std::size_t i) noexcept {
  return i * (whole / parts) + std::min(i, whole % parts);
}

}  // namespace

Grid::Grid(const Request& request) noexcept {
  blocks_ = request.collective.blocks();
  chunks_per_block_ = std::max(request.chunks / blocks_, 1);
  count_ = request.count;
  chunk_limit_ = request.chunk_limit;
  if (request.collective.kind == CollectiveKind::barrier) {
    count_ = 0;
    return;  // one tile, in which nothing but order passes
  }
  granule_ = std::max<std::size_t>(cut_bytes / request.element_bytes, 1);
  if (granule_ > chunk_limit_) granule_ = 1;

  const std::size_t parts = static_cast<std::size_t>(chunks_per_block_);
  const std::size_t granules_of_limit = chunk_limit_ / granule_;
  if (granules_of_limit >= divide_up(divide_up(count_, granule_), parts)) {
    tile_length_ = count_;
    tiles_ = count_ > 0 ? 1 : 0;
  } else {
    tile_length_ = parts * granules_of_limit * granule_;
    tiles_ = divide_up(count_, tile_length_);
  }
}

Grid::Piece Grid::piece(Buffer buffer, int chunk, std::size_t tile) const noexcept {
  if (buffer == Buffer::scratch)
    return {static_cast<std::size_t>(chunk) * chunk_limit_, chunk_limit_};
  const std::size_t begin = tile * tile_length_;
  if (begin >= count_) return {};
  const std::size_t length = std::min(tile_length_, count_ - begin);

  const auto parts = static_cast<std::size_t>(chunks_per_block_);
  const std::size_t block = static_cast<std::size_t>(chunk) / parts;
  const std::size_t part = static_cast<std::size_t>(chunk) % parts;
  const std::size_t granules = divide_up(length, granule_);
  const std::size_t first = std::min(even_cut(granules, parts, part) * granule_, length);
  const std::size_t last = std::min(even_cut(granules, parts, part + 1) * granule_, length);
  return {block * count_ + begin + first, last - first};
}

}  // namespace khoro
