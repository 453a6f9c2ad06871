// SPDX-License-Identifier: Apache-2.0
#include "topology/search/splitting.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "topology/index.h"
#include "topology/search/flow.h"

namespace khoro {
namespace {

/// One path after another, without the loops that this makes.
std::vector<int> joined(const Graph& graph, const std::vector<int>& first,
                        const std::vector<int>& second) {
  std::vector<int> path;
  for (const auto* part : {&first, &second})
    for (int edge : *part) {
      const auto loop = std::find_if(path.begin(), path.end(), [&](int before) {
        return graph.edge(before).from == graph.edge(edge).to;
      });
      if (loop == path.end())
        path.push_back(edge);
      else
        path.erase(loop, path.end());
    }
  return path;
}

}  // namespace

SplitGraph::SplitGraph(const Graph& graph, const std::vector<std::int64_t>& units,
                       std::vector<std::int64_t> trees)
    : graph_(graph),
      trees_(std::move(trees)),
      units_(graph.sites.size() * graph.sites.size()),
      strands_(units_.size()),
      flows_(at(graph.gpus)) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i] == 0) continue;
    const std::size_t place = pair(graph.edges[i].from, graph.edges[i].to);
    units_[place] += units[i];
    strands_[place].push_back({units[i], {static_cast<int>(i)}});
  }
}

const std::vector<Strand>& SplitGraph::strands(int from, int to) const {
  return strands_[pair(from, to)];
}

std::int64_t SplitGraph::leaving(int vertex) const noexcept {
  std::int64_t sum = 0;
  for (int to = 0; to < graph_.vertices(); ++to) sum += units(vertex, to);
  return sum;
}

/// How much less than all reaches a GPU. If nothing, its flow is known after; else a set that will
/// be tight once as many more units lead out of it.
std::int64_t SplitGraph::missing(int gpu) {
  const int source = graph_.vertices();
  FlowNetwork network(source + 1);
  std::vector<std::pair<std::size_t, int>> arcs;
  for (int from = 0; from < source; ++from)
    for (int to = 0; to < source; ++to)
      if (units(from, to) > 0)
        arcs.emplace_back(pair(from, to), network.add(from, to, units(from, to)));
  for (int other = 0; other < graph_.gpus; ++other) network.add(source, other, trees_[at(other)]);
  const std::int64_t wanted = std::accumulate(trees_.begin(), trees_.end(), std::int64_t{0});
  const std::int64_t lack = wanted - network.flow(source, gpu, wanted);
  if (lack > 0) {
    std::vector<bool> set;
    for (int i = 0; i < source; ++i) set.push_back(network.on_source_side(i));
    tight_.push_back(std::move(set));
    return lack;
  }
  Flow& flow = flows_[at(gpu)];
  flow.assign(units_.size(), 0);
  for (const auto& [place, arc] : arcs) flow[place] = network.flow_over(arc);
  return 0;
}

bool SplitGraph::suffices() {
  for (int gpu = 0; gpu < graph_.gpus; ++gpu)
    if (missing(gpu) > 0) return false;
  return true;
}

/// Units that can be joined for sure: sets of vertices that this takes units from have at least
/// these to spare, since the relay may as well change sides.
std::int64_t SplitGraph::sure(const Join& join) const noexcept {
  std::int64_t beside = units(join.from, join.relay) + units(join.relay, join.from);
  if (join.from != join.to) beside += units(join.to, join.relay) + units(join.relay, join.to);
  return beside - leaving(join.relay);
}

/// Takes a flow along when units are joined that it uses, and says how many of them it uses; -1 if
/// it needs another way. Units are those after it.
std::int64_t SplitGraph::reroute(Flow& flow, const Join& join) const {
  if (flow.empty()) return -1;
  const std::size_t in = pair(join.from, join.relay), out = pair(join.relay, join.to);
  const std::int64_t over =
      std::max({flow[in] - units_[in], flow[out] - units_[out], std::int64_t{0}});
  if (over > std::min(flow[in], flow[out])) return -1;
  flow[in] -= over;
  flow[out] -= over;
  if (join.from != join.to) flow[pair(join.from, join.to)] += over;
  return over;
}

void SplitGraph::apply(const Join& join) {
  units_[pair(join.from, join.relay)] -= join.amount;
  units_[pair(join.relay, join.to)] -= join.amount;
  if (join.from != join.to) units_[pair(join.from, join.to)] += join.amount;
}

/// Whether a tight set would lose units.
bool SplitGraph::is_tight(const Join& join) const {
  return std::any_of(tight_.begin(), tight_.end(), [&](const std::vector<bool>& set) {
    return set[at(join.from)] == set[at(join.to)] && set[at(join.from)] != set[at(join.relay)];
  });
}

void SplitGraph::undo(const Join& join, const std::vector<std::int64_t>& rerouted) {
  apply({join.from, join.relay, join.to, -join.amount});
  for (std::size_t gpu = 0; gpu < rerouted.size(); ++gpu) {
    Flow& flow = flows_[gpu];
    if (rerouted[gpu] < 0) {
      flow.clear();  // another flow since, which may use what is undone
      continue;
    }
    flow[pair(join.from, join.relay)] += rerouted[gpu];
    flow[pair(join.relay, join.to)] += rerouted[gpu];
    if (join.from != join.to) flow[pair(join.from, join.to)] -= rerouted[gpu];
  }
}

/// Lowers the amount to what may be joined, and joins it. Joining takes from some cuts, from each
/// as much; so what a GPU then misses is what was too much.
void SplitGraph::shrink_to_feasible(Join& join) {
  if (is_tight(join)) join.amount = 0;
  for (bool again = true; again && join.amount > 0;) {
    again = false;
    apply(join);
    std::vector<std::int64_t> rerouted;
    for (int gpu = 0; gpu < graph_.gpus && !again; ++gpu) {
      const std::int64_t over = reroute(flows_[at(gpu)], join);
      if (const std::int64_t lack = over < 0 ? missing(gpu) : 0; lack > 0) {
        undo(join, rerouted);
        join.amount -= std::min(lack, join.amount);
        again = true;
      }
      rerouted.push_back(over);
    }
  }
}

void SplitGraph::join_most(int from, int relay, int to) {
  Join join{from, relay, to, std::min(units(from, relay), units(relay, to))};
  if (join.amount == 0) return;
  if (join.amount > sure(join)) {
    shrink_to_feasible(join);
  } else {
    apply(join);
    for (Flow& flow : flows_)
      if (reroute(flow, join) < 0) flow.clear();
  }
  join_strands(join);
}

void SplitGraph::join_strands(Join join) {
  std::vector<Strand>& in = strands_[pair(join.from, join.relay)];
  std::vector<Strand>& out = strands_[pair(join.relay, join.to)];
  while (join.amount > 0) {
    const std::int64_t part = std::min({join.amount, in.back().units, out.back().units});
    if (join.from != join.to)
      strands_[pair(join.from, join.to)].push_back(
          {part, joined(graph_, in.back().path, out.back().path)});
    for (auto* side : {&in, &out})
      if ((side->back().units -= part) == 0) side->pop_back();
    join.amount -= part;
  }
}

/// No network is passed from a part to itself.
bool SplitGraph::may_pass(int from, int relay, int to) const noexcept {
  return graph_.part[at(relay)] >= 0 || graph_.part[at(from)] != graph_.part[at(to)];
}

void SplitGraph::remove(int relay) {
  for (int to = 0; to < graph_.vertices(); ++to) {
    for (int from = 0; from < graph_.vertices() && units(relay, to) > 0; ++from)
      if (from != to && may_pass(from, relay, to)) join_most(from, relay, to);
    // The rest goes back where it came from: it is not needed.
    join_most(to, relay, to);
  }
  for (int other = 0; other < graph_.vertices(); ++other)
    for (const std::size_t place : {pair(relay, other), pair(other, relay)}) {
      if (units_[place] > 0) flows_.assign(flows_.size(), {});  // may use what cannot be joined
      units_[place] = 0;
      strands_[place].clear();
    }
}

void SplitGraph::remove_relays() {
  // Networks first, while it shows which part units come from.
  for (const bool networks : {true, false})
    for (int relay = graph_.gpus; relay < graph_.vertices(); ++relay)
      if ((graph_.part[at(relay)] < 0) == networks) remove(relay);
}

}  // namespace khoro
