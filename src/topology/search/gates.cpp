// SPDX-License-Identifier: Apache-2.0
#include "topology/search/gates.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "topology/index.h"

namespace khoro {
namespace {

constexpr double gain_worth = 1.01;  // what lies further away is worth it
constexpr double unlimited = std::numeric_limits<double>::infinity();

/// The shortest ways through relays from a vertex, or to it; of equally short ones the widest.
class Ways {
 public:
  Ways(const Graph& whole, const GraphPart& part, int vertex, bool towards)
      : graph_(part.graph),
        towards_(towards),
        labels_(part.graph.sites.size(), Label{std::numeric_limits<int>::max(), 0, 0}),
        last_(part.graph.sites.size(), -1) {
    std::vector<std::vector<int>> touching(part.graph.sites.size());
    for (int i = 0; i < static_cast<int>(graph_.edges.size()); ++i)
      touching[at(towards ? graph_.edge(i).to : graph_.edge(i).from)].push_back(i);
    std::priority_queue<Label, std::vector<Label>, std::greater<>> queue;
    labels_[at(vertex)] = {0, std::numeric_limits<std::int64_t>::min(), vertex};
    queue.push(labels_[at(vertex)]);
    while (!queue.empty()) {
      const Label label = queue.top();
      queue.pop();
      const auto [links, minus_rate, here] = label;
      if (label != labels_[at(here)] || (here < graph_.gpus && here != vertex)) continue;
      for (int index : touching[at(here)]) {
        const Graph::Edge& edge = graph_.edge(index);
        const int there = towards ? edge.from : edge.to;
        const auto more = static_cast<int>(whole.edge(part.edges[at(index)]).links.size());
        const Label next{links + more, std::max(minus_rate, -edge.capacity), there};
        if (next >= labels_[at(there)]) continue;
        labels_[at(there)] = next;
        last_[at(there)] = index;
        queue.push(next);
      }
    }
  }

  /// To compare: the number of links, and minus the rate of the slowest.
  std::pair<int, std::int64_t> length(int gpu) const {
    return {std::get<0>(labels_[at(gpu)]), std::get<1>(labels_[at(gpu)])};
  }
  bool reaches(int gpu) const { return length(gpu).first < std::numeric_limits<int>::max(); }

  std::vector<int> path(int gpu) const {
    std::vector<int> path;
    for (int vertex = gpu; last_[at(vertex)] >= 0;) {
      path.push_back(last_[at(vertex)]);
      vertex = towards_ ? graph_.edge(path.back()).to : graph_.edge(path.back()).from;
    }
    if (!towards_) std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  using Label = std::tuple<int, std::int64_t, int>;  // links, minus the rate, vertex

  const Graph& graph_;
  bool towards_;
  std::vector<Label> labels_;
  std::vector<int> last_;  // edge, by vertex
};

/// All gates that a door may have, to the nearest GPUs or to all.
std::vector<Gate> gates_of_door(const Graph& whole, const GraphPart& part, int door, bool to_all) {
  const int vertex = part.doors[at(door)].vertex;
  const Ways in(whole, part, vertex, false), out(whole, part, vertex, true);
  std::vector<int> gpus;
  const auto length = [&](int gpu) { return std::make_pair(in.length(gpu), out.length(gpu)); };
  for (int gpu = 0; gpu < part.graph.gpus; ++gpu) {
    if (!in.reaches(gpu) || !out.reaches(gpu)) continue;
    if (!to_all && !gpus.empty() && length(gpu) < length(gpus.front())) gpus.clear();
    if (to_all || gpus.empty() || length(gpu) == length(gpus.front())) gpus.push_back(gpu);
  }
  std::vector<Gate> gates;
  for (int gpu : gpus) gates.push_back({door, gpu, in.path(gpu), out.path(gpu), 0});
  return gates;
}

/// Of the gates of doors that are near to the same GPUs, those that each door takes: as few as
/// give each GPU as much.
void take(const std::vector<std::vector<Gate>>& alike, std::vector<Gate>& taken) {
  const std::size_t doors = alike.size(), gpus = alike.front().size();
  for (std::size_t i = 0; i < doors; ++i) {
    std::size_t first = 0, last = gpus;
    if (doors % gpus == 0) {
      first = i % gpus;
      last = first + 1;
    } else if (gpus % doors == 0) {
      first = i * (gpus / doors);
      last = first + gpus / doors;
    }
    for (std::size_t gate = first; gate < last; ++gate) taken.push_back(alike[i][gate]);
  }
}

/// Lets the rates of all gates rise together; those on an edge that is full stop.
class Filling {
 public:
  Filling(const Graph& whole, const GraphPart& part, std::vector<Gate>& gates, bool inwards)
      : gates_(gates), inwards_(inwards), rates_(gates.size()), stopped_(gates.size()) {
    std::map<int, double> gates_of_door;
    for (const Gate& gate : gates) gates_of_door[gate.door] += 1;
    for (const Gate& gate : gates) weights_.push_back(1 / gates_of_door[gate.door]);
    for (const Graph::Edge& edge : part.graph.edges)
      left_.push_back(static_cast<double>(edge.capacity));
    for (const Door& door : part.doors)
      left_.push_back(static_cast<double>(whole.edge(inwards ? door.in : door.out).capacity));
    first_door_ = static_cast<int>(part.graph.edges.size());
  }

  std::vector<double> rates() {
    while (std::find(stopped_.begin(), stopped_.end(), false) != stopped_.end()) rise();
    return rates_;
  }

 private:
  std::vector<int> edges_of(const Gate& gate) const {
    std::vector<int> edges = inwards_ ? gate.in : gate.out;
    edges.push_back(first_door_ + gate.door);
    return edges;
  }

  void rise() {
    std::vector<double> slope(left_.size());
    for (std::size_t i = 0; i < gates_.size(); ++i)
      if (!stopped_[i])
        for (int edge : edges_of(gates_[i])) slope[at(edge)] += weights_[i];
    double step = unlimited;
    for (std::size_t i = 0; i < left_.size(); ++i)
      if (slope[i] > 0) step = std::min(step, left_[i] / slope[i]);
    for (std::size_t i = 0; i < left_.size(); ++i) left_[i] -= step * slope[i];
    for (std::size_t i = 0; i < gates_.size(); ++i) {
      if (stopped_[i]) continue;
      rates_[i] += step * weights_[i];
      for (int edge : edges_of(gates_[i])) stopped_[i] = stopped_[i] || left_[at(edge)] < 1;
    }
  }

  const std::vector<Gate>& gates_;
  bool inwards_;
  std::vector<double> rates_;
  std::vector<bool> stopped_;
  std::vector<double> weights_;
  std::vector<double> left_;  // bytes per second; of edges, then of doors
  int first_door_ = 0;
};

std::vector<Gate> gates_to(const Graph& whole, const GraphPart& part, bool all) {
  std::map<std::vector<int>, std::vector<std::vector<Gate>>> by_gpus;
  for (int door = 0; door < static_cast<int>(part.doors.size()); ++door) {
    std::vector<Gate> gates = gates_of_door(whole, part, door, all);
    if (gates.empty()) return {};
    std::vector<int> gpus;
    for (const Gate& gate : gates) gpus.push_back(gate.gpu);
    by_gpus[gpus].push_back(std::move(gates));
  }
  std::vector<Gate> taken;
  for (const auto& [gpus, alike] : by_gpus) take(alike, taken);
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Gate& a, const Gate& b) { return a.door < b.door; });
  const std::vector<double> in = Filling(whole, part, taken, true).rates();
  const std::vector<double> out = Filling(whole, part, taken, false).rates();
  for (std::size_t i = 0; i < taken.size(); ++i) taken[i].rate = std::min(in[i], out[i]);
  return taken;
}

double rate_of(const std::vector<Gate>& gates) {
  return std::accumulate(gates.begin(), gates.end(), 0.0,
                         [](double sum, const Gate& gate) { return sum + gate.rate; });
}

}  // namespace

std::vector<Gate> gates_of(const Graph& whole, const GraphPart& part) {
  std::vector<Gate> near = gates_to(whole, part, false), all = gates_to(whole, part, true);
  return rate_of(all) > rate_of(near) * gain_worth ? all : near;
}

}  // namespace khoro
