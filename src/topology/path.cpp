// SPDX-License-Identifier: Apache-2.0
#include "topology/path.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

namespace khoro {
namespace {

/// Shortest paths from one site over the links that `may_pass` lets through; of equally short ones
/// the fastest. Sites other than the ends are passed only where `may_relay` says so.
template <class LinkTest, class SiteTest>
std::optional<Path> shortest(const Topology& topology, int from, int to, LinkTest&& may_pass,
                             SiteTest&& may_relay) {
  const std::size_t sites = topology.sites.size();
  std::vector<std::vector<int>> leaving(sites);
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    if (may_pass(topology.links[i]))
      leaving[static_cast<std::size_t>(topology.links[i].from)].push_back(static_cast<int>(i));

  using Rank = std::tuple<int, double, int>;  // hops, minus the rate, site
  std::vector<Rank> best(sites, Rank{std::numeric_limits<int>::max(), 0, 0});
  std::vector<int> came_by(sites, -1);
  std::priority_queue<Rank, std::vector<Rank>, std::greater<>> next;
  next.emplace(0, -std::numeric_limits<double>::infinity(), from);
  best[static_cast<std::size_t>(from)] = next.top();
  while (!next.empty()) {
    const Rank here = next.top();
    const auto [hops, minus_rate, site] = here;
    next.pop();
    if (site == to) break;
    if (here > best[static_cast<std::size_t>(site)]) continue;
    if (site != from && !may_relay(topology.site(site))) continue;
    for (const int index : leaving[static_cast<std::size_t>(site)]) {
      const Link& link = topology.links[static_cast<std::size_t>(index)];
      const Rank there{hops + 1, std::max(minus_rate, -link.bytes_per_second), link.to};
      if (there >= best[static_cast<std::size_t>(link.to)]) continue;
      best[static_cast<std::size_t>(link.to)] = there;
      came_by[static_cast<std::size_t>(link.to)] = index;
      next.push(there);
    }
  }
  if (came_by[static_cast<std::size_t>(to)] < 0) return std::nullopt;
  Path path;
  for (int site = to; site != from;) {
    const int index = came_by[static_cast<std::size_t>(site)];
    path.links.push_back(index);
    site = topology.links[static_cast<std::size_t>(index)].from;
  }
  std::reverse(path.links.begin(), path.links.end());
  return path;
}

void measure(const Topology& topology, Path& path) {
  path.bytes_per_second = std::numeric_limits<double>::infinity();
  for (const int index : path.links) {
    const Link& link = topology.links[static_cast<std::size_t>(index)];
    path.bytes_per_second = std::min(path.bytes_per_second, link.bytes_per_second);
    path.latency_seconds += link.latency_seconds;
  }
}

/// Of a path through bridges and CPUs.
PathKind kind_of(const Topology& topology, const Path& path) {
  int bridges = 0, cpus = 0, coupled = 0;
  bool sockets = false, network = false;
  for (const int index : path.links) {
    const Link& link = topology.links[static_cast<std::size_t>(index)];
    bridges += topology.site(link.from).kind == SiteKind::bridge;
    cpus += topology.site(link.from).kind == SiteKind::cpu ||
            topology.site(link.to).kind == SiteKind::cpu;
    coupled += link.kind == LinkKind::c2c;
    sockets = sockets || link.kind == LinkKind::socket;
    network = network || link.kind == LinkKind::network;
  }
  if (network) return PathKind::network;
  if (sockets) return PathKind::sockets;
  if (coupled == static_cast<int>(path.links.size())) return PathKind::c2c;
  if (coupled > 0) return PathKind::c2c_pci;
  if (cpus > 0) return PathKind::cpu;
  return bridges > 1 ? PathKind::bridges : PathKind::one_hop;
}

std::optional<Path> direct_path(const Topology& topology, int from, int to) {
  const auto direct = [](const Link& link) { return is_direct(link.kind); };
  auto path = shortest(topology, from, to, direct,
                       [](const Site& site) { return site.kind == SiteKind::fabric; });
  if (path) {
    path->kind = PathKind::direct;
    return path;
  }
  if (topology.site(from).kind != SiteKind::gpu || topology.site(to).kind != SiteKind::gpu)
    return std::nullopt;
  path = shortest(topology, from, to, direct, [](const Site& site) {
    return site.kind == SiteKind::gpu || site.kind == SiteKind::fabric;
  });
  if (!path) return std::nullopt;
  const auto relays = std::count_if(path->links.begin(), path->links.end(), [&](int index) {
    return topology.site(topology.links[static_cast<std::size_t>(index)].from).kind ==
           SiteKind::gpu;
  });
  if (relays > 2) return std::nullopt;
  path->kind = PathKind::relayed;
  return path;
}

/// As host_path(), but over none of some links.
Path host_path_without(const Topology& topology, int from, int to, const std::set<int>& links) {
  auto path = shortest(
      topology, from, to,
      [&](const Link& link) {
        return links.empty() || !links.contains(static_cast<int>(&link - topology.links.data()));
      },
      [](const Site& site) { return site.kind != SiteKind::gpu && site.kind != SiteKind::fabric; });
  if (!path) return {};
  path->kind = kind_of(topology, *path);
  measure(topology, *path);
  return *path;
}

}  // namespace

std::string_view name(PathKind kind) noexcept {
  static constexpr std::array<std::string_view, 11> names = {
      "X", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PHB", "SYS", "NET", "DIS"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "?";
}

Path host_path(const Topology& topology, int from, int to) {
  return host_path_without(topology, from, to, {});
}

Path best_path(const Topology& topology, int from, int to) {
  if (from == to) return {PathKind::self, {}, std::numeric_limits<double>::infinity(), 0};
  Path best = host_path(topology, from, to);
  if (auto direct = direct_path(topology, from, to); direct && direct->kind <= best.kind) {
    best = *direct;
    best.bytes_per_second = 0;
    measure(topology, best);
  }
  return best;
}

std::vector<Path> equal_paths(const Topology& topology, int from, int to) {
  std::vector<Path> paths;
  std::set<int> used;
  for (Path path = best_path(topology, from, to); path.kind != PathKind::none;
       path = host_path_without(topology, from, to, used)) {
    if (!paths.empty() && (path.links.size() != paths.front().links.size() ||
                           path.bytes_per_second != paths.front().bytes_per_second))
      break;
    const bool is_network = path.kind == PathKind::network;
    for (const int link : path.links)
      if (topology.links[static_cast<std::size_t>(link)].kind == LinkKind::network)
        used.insert(link);
    paths.push_back(std::move(path));
    if (!is_network) break;
  }
  return paths;
}

}  // namespace khoro
