// SPDX-License-Identifier: Apache-2.0
#include "executor/local_blocks.h"

#include "base/hash.h"

namespace khoro {

void LocalBlocks::take(const Image& image, const Blocks& blocks, const Grid& grid) {
  const auto block_through = [&](const Port& port) -> const Block& {
    return block_of(port.sends ? blocks.input : blocks.output, port.peer);
  };
  salts.resize(image.ports.size());
  for (std::size_t i = 0; i < salts.size(); ++i)
    salts[i] = static_cast<std::uint32_t>(mix(block_through(image.ports[i]).count));
  tiles_of_stage.resize(image.stages.size());
  std::size_t first = 0;  // of the step
  std::uint64_t tiles = grid.tiles();
  for (std::size_t i = 0; i < image.stages.size(); ++i) {
    const Stage& stage = image.stages[i];
    if (stage.has_channel())
      tiles = grid.tiles_of(block_through(image.ports[image.port_of_stage[i]]));
    if (!(stage.flags & Stage::ends)) continue;
    for (; first <= i; ++first) tiles_of_stage[first] = tiles;
    tiles = grid.tiles();
  }
}

}  // namespace khoro
