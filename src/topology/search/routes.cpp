// SPDX-License-Identifier: Apache-2.0
#include "topology/search/routes.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "topology/index.h"

namespace khoro {

Routes::Routes(const Graph& graph, const std::vector<double>& prices)
    : graph_(graph), costs_(graph.gpus) {
  const bool several = graph.parts() > 1;
  for (int gpu = 0; gpu < graph.gpus; ++gpu) {
    last_edge_.push_back(search(gpu, prices, true));
    if (several) last_edge_inside_.push_back(search(gpu, prices, false));
  }
}

/// The last edge of each way, by vertex. Sets what ways to GPUs cost: all of them, or those that
/// the search over no network finds.
std::vector<int> Routes::search(int gpu, const std::vector<double>& prices, bool over_networks) {
  using Label = std::tuple<double, std::size_t, int>;  // cost, links, vertex
  const Label far{std::numeric_limits<double>::infinity(), 0, 0};
  std::vector<Label> best(graph_.sites.size(), far);
  std::vector<int> edges(graph_.sites.size(), -1);
  std::priority_queue<Label, std::vector<Label>, std::greater<>> queue;
  best[at(gpu)] = {0, 0, gpu};
  queue.push(best[at(gpu)]);
  while (!queue.empty()) {
    const auto label = queue.top();
    queue.pop();
    const auto [cost, links, vertex] = label;
    if (label != best[at(vertex)] || (vertex < graph_.gpus && vertex != gpu)) continue;
    for (int index : graph_.leaving[at(vertex)]) {
      const Graph::Edge& edge = graph_.edge(index);
      if (!over_networks && graph_.part[at(edge.to)] < 0) continue;
      const Label next{cost + prices[at(index)], links + edge.links.size(), edge.to};
      if (next >= best[at(edge.to)]) continue;
      best[at(edge.to)] = next;
      edges[at(edge.to)] = index;
      queue.push(next);
    }
  }
  for (int to = 0; to < graph_.gpus; ++to)
    if (over_networks || graph_.part[at(to)] == graph_.part[at(gpu)])
      costs_(gpu, to) = to == gpu ? 0 : std::min(std::get<0>(best[at(to)]), unreachable);
  return edges;
}

Routes::Path Routes::path(int from, int to) const {
  const bool inside = !last_edge_inside_.empty() && graph_.part[at(from)] == graph_.part[at(to)];
  const std::vector<int>& last = (inside ? last_edge_inside_ : last_edge_)[at(from)];
  Path path;
  for (int vertex = to; vertex != from; vertex = graph_.edge(path.back()).from)
    path.push_back(last[at(vertex)]);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace khoro
