// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/channel.h"
#include "topology/topology.h"

namespace khoro {

/// `direct`: NVLink and xGMI, from GPU to GPU or through switches of theirs. `all`: whatever GPUs
/// reach each other by.
enum class LinkChoice : std::uint8_t { direct, all };

/// "direct", "all".
std::string_view name(LinkChoice links) noexcept;

/// What of a topology matters to a set of its GPUs: these, and what relays data between them. Sites
/// that only pass data on between two others are no vertices but part of an edge, unless they are
/// networks. The same whatever the order of sites and links in the topology, but for the indices of
/// those.
///
/// Where the GPUs are of several machines NICs, ports and networks relay too; a network is a vertex
/// for each rail, so data that leaves by a port enters by one of the same rail.
struct Graph {
  struct Edge {
    int from = 0;
    int to = 0;
    std::int64_t capacity = 0;  // bytes per second
    LinkPath links;
    int slowest = 0;  // of the links
    int count = 1;    // of how many equal links that is made
  };

  /// How many vertices are GPUs: they come first.
  int gpus = 0;
  /// By vertex: a site.
  std::vector<int> sites;
  std::vector<Edge> edges;
  /// By vertex: the edges that leave it.
  std::vector<std::vector<int>> leaving;
  /// By vertex: which of the parts that only networks join it is in, -1 of a network itself. Parts
  /// are numbered in the order of their first vertices, and have a GPU each.
  std::vector<int> part;

  int vertices() const noexcept { return static_cast<int>(sites.size()); }
  const Edge& edge(int index) const { return edges[static_cast<std::size_t>(index)]; }
  int site(int vertex) const { return sites[static_cast<std::size_t>(vertex)]; }
  /// Links of several edges, in order.
  LinkPath route(std::span<const int> path) const;
  int parts() const noexcept;
};

/// Throws where a site is no GPU or comes twice.
Graph graph_of(const Topology& topology, std::span<const int> gpus, LinkChoice links);

/// GPUs in the order of their names, numbers in names by value where they are equally long.
std::vector<int> in_order(const Topology& topology, std::span<const int> gpus);

}  // namespace khoro
