// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace khoro {

/// Equal spanning trees from one root: edges from points that they have reached to new ones.
struct Branching {
  int root = 0;
  std::int64_t trees = 0;
  std::vector<int> reached;  // in order, from the root on
  std::vector<std::pair<int, int>> edges;
};

/// Spanning trees, from each point as many as `trees` says, that together use each edge no more
/// than `units` (by from * points + to) says (Edmonds 1973, as Bang-Jensen and Schrijver pack
/// them). Empty where the units do not suffice.
std::vector<Branching> pack_branchings(const std::vector<std::int64_t>& trees,
                                       std::vector<std::int64_t> units);

}  // namespace khoro
