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

/// Spanning trees from each of `points` points, `trees` from each, that together use each edge no
/// more than `units` (by from * points + to) says (Edmonds 1973, as Bang-Jensen and Schrijver pack
/// them). Empty where the units do not suffice.
std::vector<Branching> pack_branchings(int points, std::vector<std::int64_t> units,
                                       std::int64_t trees);

}  // namespace khoro
