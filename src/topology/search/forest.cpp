// SPDX-License-Identifier: Apache-2.0
#include "topology/search/forest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "topology/index.h"
#include "topology/search/branching.h"
#include "topology/search/splitting.h"

namespace khoro {
namespace {

__extension__ typedef __int128 Wide;  // of products of capacities

constexpr double close = 0.98;  // of the bound: more trees would cost more than they gain

/// The rate of one tree: a capacity in so many parts.
struct Rate {
  std::int64_t capacity = 0;
  std::int64_t parts = 1;
  double value() const noexcept {
    return static_cast<double>(capacity) / static_cast<double>(parts);
  }
};

class ForestSearch {
 public:
  ForestSearch(const Graph& graph, double share, const std::vector<std::int64_t>& weights)
      : graph_(graph),
        share_(share),
        weights_(weights),
        sum_(std::accumulate(weights.begin(), weights.end(), std::int64_t{0})),
        capacities_(both_ways(graph)) {}

  /// The best rate of `trees` trees from each GPU of weight 1, if it gives more than `least` to
  /// each.
  std::optional<Rate> best_rate(int trees, double least) const;
  Forest forest(Rate rate, int trees) const;

 private:
  static std::vector<std::int64_t> both_ways(const Graph& graph);
  std::vector<std::int64_t> units(Rate rate, int trees) const;
  std::vector<std::int64_t> trees_of(int trees) const;
  std::vector<Rate> candidates(int trees, double least) const;
  std::vector<Channel> channels(const SplitGraph& split, std::vector<Branching> branchings,
                                double rate) const;

  const Graph& graph_;
  double share_;
  const std::vector<std::int64_t>& weights_;  // by GPU
  std::int64_t sum_;
  std::vector<std::int64_t> capacities_;  // by edge
};

/// Of each edge and the one that leads back the lower capacity, so that as much leaves each vertex
/// as enters it.
std::vector<std::int64_t> ForestSearch::both_ways(const Graph& graph) {
  std::map<std::pair<int, int>, std::vector<int>> edges;
  for (std::size_t i = 0; i < graph.edges.size(); ++i)
    edges[{graph.edges[i].from, graph.edges[i].to}].push_back(static_cast<int>(i));
  std::vector<std::int64_t> capacities(graph.edges.size());
  for (auto& [ends, there] : edges) {
    const auto found = edges.find({ends.second, ends.first});
    if (found == edges.end()) continue;
    for (std::size_t i = 0; i < std::min(there.size(), found->second.size()); ++i)
      capacities[at(there[i])] =
          std::min(graph.edge(there[i]).capacity, graph.edge(found->second[i]).capacity);
  }
  return capacities;
}

/// How many trees fit through each edge; more than all are of no use.
std::vector<std::int64_t> ForestSearch::units(Rate rate, int trees) const {
  std::vector<std::int64_t> units;
  for (std::int64_t capacity : capacities_) {
    const Wide most = Wide{capacity} * rate.parts / rate.capacity;
    units.push_back(static_cast<std::int64_t>(std::min<Wide>(most, trees * sum_)));
  }
  return units;
}

std::vector<std::int64_t> ForestSearch::trees_of(int trees) const {
  std::vector<std::int64_t> of_each = weights_;
  for (std::int64_t& count : of_each) count *= trees;
  return of_each;
}

/// Rates at which an edge is full, up to what the bound allows, highest first.
std::vector<Rate> ForestSearch::candidates(int trees, double least) const {
  std::vector<std::int64_t> capacities = capacities_;
  std::sort(capacities.begin(), capacities.end());
  capacities.erase(std::unique(capacities.begin(), capacities.end()), capacities.end());
  const double highest = share_ / trees * (1 + 1e-12);
  std::vector<Rate> rates;
  for (std::int64_t capacity : capacities) {
    if (capacity <= 0) continue;
    const auto first = static_cast<std::int64_t>(static_cast<double>(capacity) / highest);
    for (std::int64_t parts = std::max<std::int64_t>(first, 1); parts <= trees * sum_ * 2;
         ++parts) {
      const Rate rate{capacity, parts};
      if (rate.value() > highest) continue;
      if (rate.value() * trees <= least) break;
      rates.push_back(rate);
    }
  }
  std::sort(rates.begin(), rates.end(), [](const Rate& a, const Rate& b) {
    return std::make_tuple(-a.value(), a.parts) < std::make_tuple(-b.value(), b.parts);
  });
  return rates;
}

std::optional<Rate> ForestSearch::best_rate(int trees, double least) const {
  const std::vector<Rate> rates = candidates(trees, least);
  const auto works = [&](const Rate& rate) {
    return SplitGraph(graph_, units(rate, trees), trees_of(trees)).suffices();
  };
  if (rates.empty() || !works(rates.back())) return std::nullopt;
  std::size_t low = 0, high = rates.size() - 1;  // high works
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (works(rates[middle]))
      high = middle;
    else
      low = middle + 1;
  }
  return rates[high];
}

/// A channel for each tree. Trees that are equal but for the strands that they take part, those
/// that are equal in all become one.
std::vector<Channel> ForestSearch::channels(const SplitGraph& split,
                                            std::vector<Branching> branchings, double rate) const {
  std::map<std::pair<int, int>, std::vector<Strand>> strands;
  std::vector<std::pair<Channel, std::int64_t>> merged;
  for (Branching& branching : branchings)
    while (branching.trees > 0) {
      std::int64_t trees = branching.trees;
      Channel channel{ChannelKind::tree, graph_.site(branching.root), {}, 0};
      for (const auto& edge : branching.edges) {
        auto [left, is_new] = strands.try_emplace(edge);
        if (is_new) left->second = split.strands(edge.first, edge.second);
        trees = std::min(trees, left->second.back().units);
        channel.hops.push_back({graph_.site(edge.first), graph_.site(edge.second),
                                graph_.route(left->second.back().path)});
      }
      for (const auto& edge : branching.edges) {
        std::vector<Strand>& left = strands[edge];
        if ((left.back().units -= trees) == 0) left.pop_back();
      }
      branching.trees -= trees;
      const auto same = std::find_if(merged.begin(), merged.end(),
                                     [&](const auto& other) { return other.first == channel; });
      if (same == merged.end())
        merged.emplace_back(std::move(channel), trees);
      else
        same->second += trees;
    }
  std::vector<Channel> channels;
  for (auto& [channel, trees] : merged) {
    channel.bytes_per_second = rate * static_cast<double>(trees);
    channels.push_back(std::move(channel));
  }
  return channels;
}

Forest ForestSearch::forest(Rate rate, int trees) const {
  SplitGraph split(graph_, units(rate, trees), trees_of(trees));
  split.remove_relays();
  std::vector<std::int64_t> between(at(graph_.gpus * graph_.gpus));
  for (int from = 0; from < graph_.gpus; ++from)
    for (int to = 0; to < graph_.gpus; ++to)
      for (const Strand& strand : split.strands(from, to))
        between[at(from * graph_.gpus + to)] += strand.units;
  std::vector<Branching> branchings = pack_branchings(trees_of(trees), std::move(between));
  if (branchings.empty()) return {};
  return {channels(split, std::move(branchings), rate.value()), rate.value() * trees};
}

}  // namespace

Forest pack_trees(const Graph& graph, double share, int most_trees,
                  const std::vector<std::int64_t>& weights) {
  if (graph.gpus < 2 || share <= 0) return {};
  const ForestSearch search(graph, share, weights);
  double best = 0;
  std::optional<Rate> rate;
  int trees = 0;
  for (int count = 1; count <= most_trees && best < close * share; ++count)
    if (const auto found = search.best_rate(count, best * 1.005)) {
      best = found->value() * count;
      rate = found;
      trees = count;
    }
  return rate ? search.forest(*rate, trees) : Forest();
}

Forest pack_trees(const Graph& graph, double share, int most_trees) {
  return pack_trees(graph, share, most_trees, std::vector<std::int64_t>(at(graph.gpus), 1));
}

}  // namespace khoro
