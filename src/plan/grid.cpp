// SPDX-License-Identifier: Apache-2.0
#include "plan/grid.h"

#include <algorithm>
#include <cstdint>

namespace khoro {
namespace {

constexpr std::size_t cut_bytes = 128;

std::size_t divide_up(std::size_t a, std::size_t b) noexcept { return a / b + (a % b != 0); }

/// The most that there is where the product is more.
std::size_t times(std::size_t a, std::size_t b) noexcept {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

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

  if (request.weights && !request.weights->empty()) weights_ = request.weights;
  const std::size_t most = most_granules(chunk_limit_ / granule_);
  tile_length_ = times(most, granule_);
  if (request.blocks) {
    unequal_ = request.blocks;
    tiles_ = tiles_of_blocks();
  } else if (most >= divide_up(count_, granule_)) {
    tile_length_ = count_;
    tiles_ = count_ > 0 ? 1 : 0;
  } else {
    tiles_ = divide_up(count_, tile_length_);
  }
}

std::size_t Grid::cut(std::size_t granules, std::size_t part) const noexcept {
  if (!weights_) return even_cut(granules, static_cast<std::size_t>(chunks_per_block_), part);
  const std::size_t all = weights_->before(weights_->size()), before = weights_->before(part);
  return granules / all * before + granules % all * before / all;
}

std::size_t Grid::most_granules(std::size_t limit) const noexcept {
  if (!weights_) return times(static_cast<std::size_t>(chunks_per_block_), limit);
  // Rounded down, so that no part is rounded up over the limit.
  return times(weights_->before(weights_->size()), limit) / weights_->heaviest();
}

std::size_t Grid::tiles_of_blocks() const noexcept {
  Block longest;
  for (const auto* blocks : {&unequal_->input, &unequal_->output})
    for (const Block& block : *blocks) longest.count = std::max(longest.count, block.count);
  return unequal_->local || longest.count > 0 ? tiles_of(longest) : 0;
}

std::size_t Grid::tiles_of(const Block& block) const noexcept {
  return std::max<std::size_t>(divide_up(block.count, tile_length_), 1);
}

Block Grid::block(Buffer buffer, std::size_t index) const noexcept {
  if (!unequal_) return {index * count_, count_};
  return (buffer == Buffer::input ? unequal_->input : unequal_->output)[index];
}

Grid::Piece Grid::piece(Buffer buffer, int chunk, std::size_t tile) const noexcept {
  if (buffer == Buffer::scratch)
    return {static_cast<std::size_t>(chunk) * chunk_limit_, chunk_limit_};
  const auto parts = static_cast<std::size_t>(chunks_per_block_);
  const Block block = this->block(buffer, static_cast<std::size_t>(chunk) / parts);
  const std::size_t begin = tile * tile_length_;
  if (begin >= block.count) return {};
  const std::size_t length = std::min(tile_length_, block.count - begin);

  const std::size_t part = static_cast<std::size_t>(chunk) % parts;
  const std::size_t granules = divide_up(length, granule_);
  const std::size_t first = std::min(cut(granules, part) * granule_, length);
  const std::size_t last = std::min(cut(granules, part + 1) * granule_, length);
  return {block.first + begin + first, last - first};
}

}  // namespace khoro
