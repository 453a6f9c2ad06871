// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "topology/graph.h"

namespace khoro {

/// Trees rooted at every GPU: the data of all reaches all at once.
struct Forest {
  std::vector<Channel> channels;
  /// How fast the data of each GPU reaches the others, per unit of its weight: the sum of the rates
  /// of its trees.
  double share = 0;
};

/// Spanning trees packed into links, `most_trees` at most of equal rate from each GPU (ForestColl:
/// the best rate by flows, relays removed by edge splitting, trees by Edmonds' theorem). `share` is
/// that of the bound. Takes as few trees as come within 2 % of it, or else those that come closest.
/// Where the rates of both directions of an edge differ it uses the lower one.
Forest pack_trees(const Graph& graph, double share, int most_trees);

/// The same where GPUs have unequal amounts of data: from each `weights` times as many trees as
/// from one of weight 1.
Forest pack_trees(const Graph& graph, double share, int most_trees,
                  const std::vector<std::int64_t>& weights);

}  // namespace khoro
