// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/graph.h"
#include "topology/search/cycles.h"

namespace khoro {

/// The cheapest way from each GPU of a graph to each other one through relays, when edges cost
/// something: of equal cost the one of the fewest links. Between GPUs of one part it leads over no
/// network.
class Routes {
 public:
  /// Edges in order.
  using Path = std::vector<int>;

  Routes(const Graph& graph, const std::vector<double>& prices);

  /// Between all GPUs; `unreachable` where no relays join two.
  const Costs& costs() const noexcept { return costs_; }
  Path path(int from, int to) const;

  static constexpr double unreachable = 1e4;

 private:
  std::vector<int> search(int gpu, const std::vector<double>& prices, bool over_networks);

  const Graph& graph_;
  Costs costs_;
  std::vector<std::vector<int>> last_edge_;         // by GPU, by vertex
  std::vector<std::vector<int>> last_edge_inside_;  // of ways over no network; empty: the same
};

}  // namespace khoro
