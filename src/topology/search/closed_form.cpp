// SPDX-License-Identifier: Apache-2.0
#include "topology/search/closed_form.h"

#include <algorithm>
#include <limits>

#include "topology/index.h"
#include "topology/search/hamiltonian.h"

namespace khoro {
namespace {

/// The edge between two vertices; -1 if there is none, or several.
int only_edge(const Graph& graph, int from, int to) {
  int found = -1;
  for (int index : graph.leaving[at(from)]) {
    if (graph.edge(index).to != to) continue;
    if (found >= 0) return -1;
    found = index;
  }
  return found;
}

/// A relay that all GPUs hang off, and the edges to and from it.
struct Star {
  std::vector<int> up;  // by GPU
  std::vector<int> down;
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  int count = std::numeric_limits<int>::max();  // of equal links that an edge is made of
};

/// Empty if a GPU does not hang off the relay.
Star star_around(const Graph& graph, int relay) {
  Star star;
  for (int gpu = 0; gpu < graph.gpus; ++gpu) {
    const int up = only_edge(graph, gpu, relay), down = only_edge(graph, relay, gpu);
    if (up < 0 || down < 0) return {};
    star.up.push_back(up);
    star.down.push_back(down);
    for (int index : {up, down}) {
      star.rate = std::min(star.rate, graph.edge(index).capacity);
      star.count = std::min(star.count, graph.edge(index).count);
    }
  }
  return star;
}

Channel ring_around(const Graph& graph, const Star& star, int rings) {
  Channel ring{ChannelKind::ring, graph.site(0), {}, static_cast<double>(star.rate) / rings};
  for (int gpu = 0; gpu < graph.gpus; ++gpu) {
    const int next = (gpu + 1) % graph.gpus;
    ring.hops.push_back({graph.site(gpu), graph.site(next),
                         graph.route(std::vector{star.up[at(gpu)], star.down[at(next)]})});
  }
  return ring;
}

}  // namespace

std::vector<Channel> rings_of_switches(const Graph& graph, int most) {
  std::vector<Star> stars;
  int links = 0;
  for (int relay = graph.gpus; relay < graph.vertices(); ++relay) {
    Star star = star_around(graph, relay);
    if (star.up.empty()) continue;
    links += star.count;
    stars.push_back(std::move(star));
  }
  if (stars.size() > at(most)) stars.resize(at(most));
  std::vector<Channel> channels;
  for (const Star& star : stars) {
    const int rings = links <= most ? star.count : std::max(1, star.count * most / links);
    for (int i = 0; i < rings; ++i) channels.push_back(ring_around(graph, star, rings));
  }
  if (channels.size() > at(most)) return {};
  return channels;
}

std::vector<Channel> rings_of_mesh(const Graph& graph, int most) {
  if (graph.gpus - 1 > most) return {};
  Costs edges(graph.gpus);
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  for (int from = 0; from < graph.gpus; ++from)
    for (int to = 0; to < graph.gpus; ++to) {
      if (from == to) continue;
      const int index = only_edge(graph, from, to);
      if (index < 0) return {};
      edges(from, to) = index;
      rate = std::min(rate, graph.edge(index).capacity);
    }
  std::vector<Channel> channels;
  for (const Cycle& cycle : hamiltonian_cycles(graph.gpus)) {
    Channel ring{ChannelKind::ring, graph.site(cycle.front()), {}, static_cast<double>(rate)};
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const int from = cycle[i], to = cycle[(i + 1) % cycle.size()];
      ring.hops.push_back(
          {graph.site(from), graph.site(to), graph.edge(static_cast<int>(edges(from, to))).links});
    }
    channels.push_back(std::move(ring));
  }
  return channels;
}

}  // namespace khoro
