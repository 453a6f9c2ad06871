// SPDX-License-Identifier: Apache-2.0
#include "topology/search/flow.h"

#include <algorithm>

#include "topology/index.h"

namespace khoro {

FlowNetwork::FlowNetwork(int vertices)
    : from_(at(vertices)), level_(at(vertices)), next_(at(vertices)) {}

int FlowNetwork::add(int from, int to, std::int64_t capacity) {
  const int arc = static_cast<int>(arcs_.size());
  arcs_.push_back({to, 0, capacity});
  arcs_.push_back({from, 0, 0});
  from_[at(from)].push_back(arc);
  from_[at(to)].push_back(arc + 1);
  return arc;
}

void FlowNetwork::set_capacity(int arc, std::int64_t capacity) noexcept {
  arcs_[at(arc)].capacity = capacity;
}

bool FlowNetwork::find_levels(int source, int sink) {
  std::fill(level_.begin(), level_.end(), -1);
  queue_.assign(1, source);
  level_[at(source)] = 0;
  for (std::size_t first = 0; first < queue_.size(); ++first)
    for (int arc : from_[at(queue_[first])]) {
      const Arc& next = arcs_[at(arc)];
      if (next.rest <= 0 || level_[at(next.to)] >= 0) continue;
      level_[at(next.to)] = level_[at(queue_[first])] + 1;
      if (next.to == sink) return true;
      queue_.push_back(next.to);
    }
  return false;
}

std::int64_t FlowNetwork::push(int vertex, int sink, std::int64_t most) {
  if (vertex == sink) return most;
  std::int64_t pushed = 0;
  for (std::size_t& i = next_[at(vertex)]; i < from_[at(vertex)].size(); ++i) {
    const int arc = from_[at(vertex)][i];
    const int to = arcs_[at(arc)].to;
    if (arcs_[at(arc)].rest <= 0 || level_[at(to)] != level_[at(vertex)] + 1) continue;
    const std::int64_t part = push(to, sink, std::min(most - pushed, arcs_[at(arc)].rest));
    arcs_[at(arc)].rest -= part;
    arcs_[at(arc ^ 1)].rest += part;
    pushed += part;
    if (pushed == most) return pushed;  // the arc may have room left
  }
  return pushed;
}

std::int64_t FlowNetwork::flow(int source, int sink, std::int64_t most) {
  for (Arc& arc : arcs_) arc.rest = arc.capacity;
  std::int64_t found = 0;
  while (found < most && find_levels(source, sink)) {
    std::fill(next_.begin(), next_.end(), 0);
    found += push(source, sink, most - found);
  }
  return found;
}

std::int64_t FlowNetwork::flow_over(int arc) const noexcept {
  return std::max<std::int64_t>(arcs_[at(arc)].capacity - arcs_[at(arc)].rest, 0);
}

bool FlowNetwork::on_source_side(int vertex) const noexcept { return level_[at(vertex)] >= 0; }

}  // namespace khoro
