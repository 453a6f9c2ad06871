// SPDX-License-Identifier: Apache-2.0
#include "plan/grid.h"

#include <algorithm>
#include <bit>
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

}  // namespace

Grid::Grid(const Request& request) noexcept {
  const int blocks = request.collective.blocks();
  cuts_.parts = static_cast<std::uint32_t>(std::max(request.chunks / blocks, 1));
  cuts_.count = request.count;
  cuts_.chunk_limit = request.chunk_limit;
  if (request.collective.kind == CollectiveKind::barrier) {
    cuts_.count = 0;
    return;  // one tile, in which nothing but order passes
  }
  std::size_t granule = std::max<std::size_t>(cut_bytes / request.element_bytes, 1);
  if (granule > cuts_.chunk_limit) granule = 1;
  cuts_.granule = static_cast<std::uint32_t>(std::countr_zero(granule));

  static const Weights alike;
  const Weights& weights = request.weights ? *request.weights : alike;
  cuts_.weights = weights.cuts();
  const std::size_t most = most_granules(cuts_.chunk_limit / granule, weights);
  cuts_.tile_length = times(most, granule);
  if (request.blocks) {
    cuts_.unequal = true;
    cuts_.input = request.blocks->input.data();
    cuts_.output = request.blocks->output.data();
    tiles_ = tiles_of_blocks(*request.blocks);
  } else if (most >= divide_up(cuts_.count, granule)) {
    cuts_.tile_length = cuts_.count;
    tiles_ = cuts_.count > 0 ? 1 : 0;
  } else {
    tiles_ = divide_up(cuts_.count, cuts_.tile_length);
  }
}

std::size_t Grid::most_granules(std::size_t limit, const Weights& weights) const noexcept {
  if (weights.empty()) return times(cuts_.parts, limit);
  // Rounded down, so that no part is rounded up over the limit.
  return times(weights.before(weights.size()), limit) / weights.heaviest();
}

std::size_t Grid::tiles_of_blocks(const Blocks& blocks) const noexcept {
  Block longest;
  for (const auto* side : {&blocks.input, &blocks.output})
    for (const Block& block : *side) longest.count = std::max(longest.count, block.count);
  return blocks.local || longest.count > 0 ? tiles_of(longest) : 0;
}

std::size_t Grid::tiles_of(const Block& block) const noexcept {
  return std::max<std::size_t>(divide_up(block.count, cuts_.tile_length), 1);
}

}  // namespace khoro
