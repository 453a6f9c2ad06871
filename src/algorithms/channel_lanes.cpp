// SPDX-License-Identifier: Apache-2.0
#include "algorithms/channel_lanes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "topology/search.h"

namespace khoro {
namespace {

/// Of the 253 that a rank may have: trees that go up and down again need two each.
constexpr int most_lanes = 126;
constexpr int most_trees = 8;  // from each rank, or as many as there are lanes
constexpr int most_weight = 256;

std::vector<int> ranks_of(const Channel& channel, const std::map<int, int>& rank_at) {
  std::vector<int> ranks;
  for (const Hop& hop : channel.hops) ranks.push_back(rank_at.at(hop.from));
  return ranks;
}

RankTree tree_of(const Channel& channel, const std::map<int, int>& rank_at) {
  RankTree tree{rank_at.at(channel.root), std::vector<int>(rank_at.size(), -1),
                std::vector<std::vector<int>>(rank_at.size())};
  for (const Hop& hop : channel.hops) {
    const int from = rank_at.at(hop.from), to = rank_at.at(hop.to);
    tree.parent[static_cast<std::size_t>(to)] = from;
    tree.children[static_cast<std::size_t>(from)].push_back(to);
  }
  return tree;
}

/// The least number of equal parts of `whole` of which each rate is a multiple, about.
int equal_parts(const std::vector<double>& rates, double whole, int most) {
  for (int parts = 1; parts < most; ++parts) {
    const bool fits = std::all_of(rates.begin(), rates.end(), [&](double rate) {
      const double multiple = rate / whole * parts;
      return std::abs(multiple - std::round(multiple)) < 1e-3 && multiple > 0.5;
    });
    if (fits) return parts;
  }
  return most;
}

/// So many trees of each root that all have the same share.
void take_trees(ChannelLanes& lanes, const std::vector<Channel>& channels,
                const std::map<int, int>& rank_at) {
  const int ranks = static_cast<int>(rank_at.size());
  std::map<int, std::vector<const Channel*>> by_root;
  std::vector<double> rates;
  double whole = 0;
  for (const Channel& channel : channels) {
    by_root[rank_at.at(channel.root)].push_back(&channel);
    rates.push_back(channel.bytes_per_second);
  }
  for (const Channel* channel : by_root.begin()->second) whole += channel->bytes_per_second;
  lanes.per_rank = equal_parts(rates, whole, std::max(most_lanes / ranks, most_trees));
  for (const auto& [root, trees] : by_root) {
    double before = 0;
    int taken = 0;
    for (const Channel* channel : trees) {
      before += channel->bytes_per_second;
      const int until = static_cast<int>(std::lround(before / whole * lanes.per_rank));
      for (; taken < until; ++taken) lanes.trees.push_back(tree_of(*channel, rank_at));
    }
  }
  // Trees of neighbouring ranks are about equally deep, so that none in a lane waits for another.
  const int trees = static_cast<int>(lanes.trees.size());
  lanes.trees_per_lane = (trees + most_lanes - 1) / most_lanes;
}

void take_rings(ChannelLanes& lanes, const std::vector<Channel>& channels,
                const std::map<int, int>& rank_at) {
  double fastest = 0;
  for (const Channel& channel : channels) fastest = std::max(fastest, channel.bytes_per_second);
  for (const Channel& channel : channels) {
    lanes.rings.push_back(ranks_of(channel, rank_at));
    const double share = channel.bytes_per_second / fastest;
    lanes.weights.push_back(
        static_cast<std::uint32_t>(std::max(std::lround(share * most_weight), 1L)));
  }
}

/// In rank order, for ranks of whose links nothing is known.
ChannelLanes plain_ring(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  return {{order}, {1}, {}, 0};
}

}  // namespace

ChannelLanes lanes_of(const Topology& topology) {
  std::map<int, int> rank_at;  // by site
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const int site = topology.place[static_cast<std::size_t>(rank)];
    if (topology.site(site).kind != SiteKind::gpu || !rank_at.emplace(site, rank).second)
      return plain_ring(topology.ranks());
  }
  const Answer answer = search_channels(topology, topology.place).whole;
  if (answer.channels.empty()) return plain_ring(topology.ranks());
  ChannelLanes lanes;
  if (answer.channels.front().kind == ChannelKind::ring)
    take_rings(lanes, answer.channels, rank_at);
  else
    take_trees(lanes, answer.channels, rank_at);
  return lanes;
}

}  // namespace khoro
