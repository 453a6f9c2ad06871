// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/graph.h"

namespace khoro {

/// Rings of unequal rates, and what is known of the best that rings can reach.
struct Rings {
  std::vector<Channel> channels;
  /// The sum of their rates.
  double bytes_per_second = 0;
  /// No rings can sum up to more: as far as prices of links show it, and no more than `target`.
  double limit = 0;
};

/// Rings by column generation: a linear program packs rings into links, and its prices show which
/// ring would improve it. Up to 12 GPUs the cheapest ring is found exactly each time, up to 16 now
/// and then, beyond by improving orders alone; graphs of thousands of edges get rings one after
/// another, without a program. Stops at `target`, which no rings exceed, and keeps
/// at most `most` rings.
Rings pack_rings(const Graph& graph, double target, int most);

}  // namespace khoro
