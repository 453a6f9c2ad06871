// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/grid.h"
#include "plan/image.h"

namespace khoro {

/// Where a rank knows its own blocks alone, the two ends of a channel know one block between them:
/// how many tiles it has, and they see if they agree.
struct LocalBlocks {
  std::vector<std::uint32_t> salts;           // of the digests, by port
  std::vector<std::uint64_t> tiles_of_stage;  // of the step of each stage

  /// Those of a call. The grid is that of the blocks.
  void take(const Image& image, const Blocks& blocks, const Grid& grid);
};

}  // namespace khoro
