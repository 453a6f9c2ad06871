// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace khoro {

/// A tree of ranks, by rank: whence its data comes and whither it goes on.
struct RankTree {
  int root = 0;
  std::vector<int> parent;
  std::vector<std::vector<int>> children;
};

/// The channels as lanes of ranks: either rings, a lane for each, or trees, a lane for as many as
/// `trees_per_lane` that follow each other.
struct ChannelLanes {
  std::vector<std::vector<int>> rings;  // ranks in order
  std::vector<std::uint32_t> weights;   // of the rings
  std::vector<RankTree> trees;          // `per_rank` for each root, by root
  int per_rank = 0;
  int trees_per_lane = 1;
};

/// Those that the search finds between the GPUs of the ranks. Where ranks sit on no GPUs, or on one
/// together, nothing is known of their links: a ring in rank order.
ChannelLanes lanes_of(const Topology& topology);

}  // namespace khoro
