// SPDX-License-Identifier: Apache-2.0
#include "topology/bound.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "topology/index.h"
#include "topology/search/flow.h"
#include "topology/search/parts.h"

namespace khoro {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// A set of vertices, what leaves it, and how many GPUs it has.
struct Side {
  std::vector<bool> has;
  std::int64_t capacity = 0;
  std::int64_t gpus = 0;
};

void measure(const Graph& graph, Side& side) {
  side.capacity = 0;
  for (const Graph::Edge& edge : graph.edges)
    if (side.has[at(edge.from)] && !side.has[at(edge.to)]) side.capacity += edge.capacity;
  side.gpus = std::count(side.has.begin(), side.has.begin() + graph.gpus, true);
}

Cut cut_of(const Graph& graph, const Side& side) {
  Cut cut;
  for (int i = 0; i < graph.vertices(); ++i)
    if (side.has[at(i)]) cut.sites.push_back(graph.site(i));
  // A network is a vertex for each rail, but one site.
  std::sort(cut.sites.begin(), cut.sites.end());
  cut.sites.erase(std::unique(cut.sites.begin(), cut.sites.end()), cut.sites.end());
  for (const Graph::Edge& edge : graph.edges)
    if (side.has[at(edge.from)] && !side.has[at(edge.to)]) cut.links.push_back(edge.slowest);
  return cut;
}

/// GPUs that stand for all: of parts that are built alike those of `most` are enough, for what
/// holds between them and others holds between any of these.
std::vector<int> different_gpus(const Graph& graph, const std::vector<GraphPart>& parts, int most) {
  std::vector<int> gpus;
  std::map<int, int> seen;  // by kind
  for (const GraphPart& part : parts)
    if (seen[part.kind]++ < most)
      gpus.insert(gpus.end(), part.vertices.begin(), part.vertices.begin() + part.graph.gpus);
  if (parts.empty())
    for (int gpu = 0; gpu < graph.gpus; ++gpu) gpus.push_back(gpu);
  return gpus;
}

/// The worst set for the share. For a GPU that is not in it, flow at a trial share from all others
/// shows whether there is a worse set; its ratio is the next trial (Newton, Dinkelbach). A share
/// that GPUs before have passed they pass as well when it falls.
class ShareSearch {
 public:
  ShareSearch(const Graph& graph, const std::vector<GraphPart>& parts)
      : graph_(graph), parts_(parts), network_(graph.vertices() + 1) {
    for (const Graph::Edge& edge : graph.edges) network_.add(edge.from, edge.to, 0);
    for (int gpu = 0; gpu < graph.gpus; ++gpu) network_.add(graph.vertices(), gpu, 0);
  }

  Side worst() {
    begin();
    for (int sink : different_gpus(graph_, parts_, 1))
      while (worst_.capacity > 0 && !passes(sink)) continue;
    return worst_;
  }

 private:
  /// All but one GPU or part, or one alone: often the worst already.
  void begin() {
    for (const bool alone : {false, true}) {
      for (int gpu : different_gpus(graph_, parts_, 1)) try_side({gpu}, alone);
      for (const GraphPart& part : parts_)
        if (parts_.size() > 1) try_side(part.vertices, alone);
    }
  }

  void try_side(const std::vector<int>& vertices, bool alone) {
    Side side{std::vector<bool>(at(graph_.vertices()), !alone), 0, 0};
    for (int vertex : vertices) side.has[at(vertex)] = alone;
    measure(graph_, side);
    keep(side);
  }

  void keep(const Side& side) {
    if (worst_.gpus == 0 || side.capacity * worst_.gpus < worst_.capacity * side.gpus)
      worst_ = side;
  }

  bool passes(int sink) {
    const std::int64_t divisor = std::gcd(worst_.capacity, worst_.gpus);
    const std::int64_t share = worst_.capacity / divisor;  // in 1 / scale of a byte per second
    const std::int64_t scale = worst_.gpus / divisor;
    int arc = 0;
    for (const Graph::Edge& edge : graph_.edges) {
      network_.set_capacity(arc, edge.capacity * scale);
      arc += 2;
    }
    for (int gpu = 0; gpu < graph_.gpus; ++gpu, arc += 2)
      network_.set_capacity(arc, gpu == sink ? 0 : share);
    const std::int64_t wanted = share * (graph_.gpus - 1);
    if (network_.flow(graph_.vertices(), sink, wanted) == wanted) return true;
    Side side{std::vector<bool>(at(graph_.vertices())), 0, 0};
    for (int i = 0; i < graph_.vertices(); ++i) side.has[at(i)] = network_.on_source_side(i);
    measure(graph_, side);
    keep(side);
    return false;
  }

  const Graph& graph_;
  const std::vector<GraphPart>& parts_;
  FlowNetwork network_;
  Side worst_;
};

FlowNetwork network_of(const Graph& graph) {
  FlowNetwork network(graph.vertices());
  for (const Graph::Edge& edge : graph.edges) network.add(edge.from, edge.to, edge.capacity);
  return network;
}

/// The set with the least capacity out of it that has a GPU and misses one: it has the first GPU or
/// misses it.
Side narrowest(const Graph& graph, const std::vector<GraphPart>& parts) {
  FlowNetwork network = network_of(graph);
  Side least;
  for (int gpu : different_gpus(graph, parts, 2)) {
    if (gpu == 0) continue;
    for (const auto& [from, to] : {std::pair(0, gpu), std::pair(gpu, 0)}) {
      const std::int64_t found = network.flow(from, to, unlimited);
      if (!least.has.empty() && found >= least.capacity) continue;
      least.has.resize(at(graph.vertices()));
      for (int i = 0; i < graph.vertices(); ++i) least.has[at(i)] = network.on_source_side(i);
      measure(graph, least);
    }
  }
  return least;
}

}  // namespace

Bound bound_of(const Graph& graph) {
  Bound bound;
  if (graph.gpus < 2) return bound;
  const std::vector<GraphPart> parts = parts_of(graph);
  const Side worst = ShareSearch(graph, parts).worst();
  const auto capacity = static_cast<double>(worst.capacity);
  bound.share = capacity / static_cast<double>(worst.gpus);
  bound.bus = capacity * (graph.gpus - 1) / static_cast<double>(worst.gpus);
  bound.bus_cut = cut_of(graph, worst);
  const Side least = narrowest(graph, parts);
  bound.ring = static_cast<double>(least.capacity);
  bound.ring_cut = cut_of(graph, least);
  return bound;
}

std::vector<double> broadcast_bounds(const Graph& graph) {
  FlowNetwork network = network_of(graph);
  std::vector<double> bounds;
  for (int root = 0; root < graph.gpus; ++root) {
    std::int64_t least = graph.gpus > 1 ? unlimited : 0;
    for (int gpu = 0; gpu < graph.gpus; ++gpu)
      if (gpu != root) least = std::min(least, network.flow(root, gpu, least));
    bounds.push_back(static_cast<double>(least));
  }
  return bounds;
}

}  // namespace khoro
