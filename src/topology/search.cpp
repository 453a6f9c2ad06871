// SPDX-License-Identifier: Apache-2.0
#include "topology/search.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "topology/check.h"
#include "topology/index.h"
#include "topology/normalise.h"
#include "topology/search/closed_form.h"
#include "topology/search/forest.h"
#include "topology/search/rings.h"
#include "topology/search/tiers.h"

namespace khoro {
namespace {

constexpr double reached = 0.999;     // of a bound: nothing is left to search for
constexpr double near_enough = 0.95;  // of the bound: trees are not tried
constexpr double near_enough_over_networks = 0.98;
constexpr int most_trees = 8;          // from each GPU
constexpr int most_trees_of_many = 2;  // where there are more than
constexpr int many_gpus = 32;
// Beyond, packing takes too long: of trees, and of rings where there is an answer already.
constexpr int most_gpus_of_trees = 72;
constexpr int most_gpus_of_rings = 256;
constexpr double healthy = 0.5;  // of the direct rate of the GPU in the middle

void use(Answer& answer, Method method, std::vector<Channel> channels) {
  answer.method = method;
  answer.bus = bus_bandwidth(channels, answer.gpus.size());
  answer.channels = std::move(channels);
}

void use_if_faster(Answer& answer, Method method, std::vector<Channel> channels) {
  if (bus_bandwidth(channels, answer.gpus.size()) > answer.bus)
    use(answer, method, std::move(channels));
}

bool try_closed_forms(Answer& answer, const Graph& graph) {
  for (const Method method : {Method::switches, Method::mesh}) {
    std::vector<Channel> channels = method == Method::switches
                                        ? rings_of_switches(graph, most_rings)
                                        : rings_of_mesh(graph, most_rings);
    if (bus_bandwidth(channels, answer.gpus.size()) < reached * answer.bound.bus) continue;
    use(answer, method, std::move(channels));
    return true;
  }
  return false;
}

/// As fast as links allow: shares that were nearly the same have become one.
std::vector<Channel> fitted(const Topology& topology, std::vector<Channel> channels) {
  const std::vector<double> loads = loads_of(topology, channels);
  double scale = 1;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (loads[i] > 0) scale = std::min(scale, topology.links[i].bytes_per_second / loads[i]);
  for (Channel& channel : channels) channel.bytes_per_second *= scale;
  return channels;
}

/// Whether hops within a machine stay in it. Packed trees may use a port out and another one in.
bool keep_to_machines(const Topology& topology, std::span<const Channel> channels) {
  for (const Channel& channel : channels)
    for (const Crossing& crossing : crossings_of(topology, channel)) {
      const Hop& hop = channel.hops[at(crossing.hop)];
      if (topology.site(hop.from).machine == topology.site(hop.to).machine) return false;
    }
  return true;
}

/// Over networks trees of tiers come first: they take milliseconds for any number of machines.
void search_in(Answer& answer, const Topology& topology, const Graph& graph) {
  const double most = answer.bound.bus;
  if (most <= 0 || try_closed_forms(answer, graph)) return;
  const bool over_networks = graph.parts() > 1;
  const double enough = (over_networks ? near_enough_over_networks : near_enough) * most;
  if (over_networks)
    use_if_faster(answer, Method::tiers, fitted(topology, trees_over_networks(graph)));
  if (answer.bus >= enough) return;
  if (answer.bus == 0 || (graph.gpus <= most_gpus_of_rings && answer.bound.ring > answer.bus))
    use_if_faster(answer, Method::rings, pack_rings(graph, answer.bound.ring, most_rings).channels);
  const int most_gpus = over_networks ? many_gpus : most_gpus_of_trees;
  if (answer.bus >= enough || graph.gpus > most_gpus) return;
  const int trees = graph.gpus > many_gpus ? most_trees_of_many : most_trees;
  Forest forest = pack_trees(graph, answer.bound.share, trees);
  if (keep_to_machines(topology, forest.channels))
    use_if_faster(answer, Method::trees, std::move(forest.channels));
}

std::vector<int> full_links(const Topology& topology, std::span<const Channel> channels) {
  const std::vector<double> loads = loads_of(topology, channels);
  std::vector<int> full;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (loads[i] > reached * topology.links[i].bytes_per_second && loads[i] > 0)
      full.push_back(static_cast<int>(i));
  return full;
}

/// Sites that are GPUs whose direct links are at least half as fast in all as those of the GPU in
/// the middle, of all that have any.
std::vector<bool> healthy_sites(const Topology& topology) {
  std::vector<double> rates(topology.sites.size()), sorted;
  for (int gpu : topology.sites_of(SiteKind::gpu)) {
    rates[at(gpu)] = direct_rate(topology, gpu);
    if (rates[at(gpu)] > 0) sorted.push_back(rates[at(gpu)]);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<bool> is_healthy;
  for (double rate : rates)
    is_healthy.push_back(rate > 0 && rate >= healthy * sorted[sorted.size() / 2]);
  return is_healthy;
}

/// Groups of vertices that are GPUs and joined, in the order of the first of each.
std::vector<std::vector<int>> islands_of(const Graph& graph) {
  std::vector<int> group(graph.sites.size());
  std::iota(group.begin(), group.end(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Graph::Edge& edge : graph.edges)
      if (group[at(edge.from)] != group[at(edge.to)]) {
        group[at(edge.from)] = group[at(edge.to)] =
            std::min(group[at(edge.from)], group[at(edge.to)]);
        changed = true;
      }
  }
  std::map<int, std::vector<int>> islands;
  for (int gpu = 0; gpu < graph.gpus; ++gpu) islands[group[at(gpu)]].push_back(graph.site(gpu));
  std::vector<std::vector<int>> sites;
  for (auto& [first, members] : islands) sites.push_back(std::move(members));
  return sites;
}

}  // namespace

std::string_view name(Method method) noexcept {
  static constexpr std::array<std::string_view, 6> names = {"none",  "switches", "mesh",
                                                            "rings", "trees",    "tiers"};
  const auto index = static_cast<std::size_t>(method);
  return index < names.size() ? names[index] : "?";
}

Answer search_channels(const Topology& topology, std::span<const int> gpus, LinkChoice links) {
  Answer answer;
  answer.gpus = in_order(topology, gpus);
  answer.links = links;
  const Graph graph = graph_of(topology, answer.gpus, links);
  answer.bound = bound_of(graph);
  search_in(answer, topology, graph);
  answer.full = full_links(topology, answer.channels);
  return answer;
}

Answers search_channels(const Topology& topology, std::span<const int> gpus) {
  const Graph direct = graph_of(topology, gpus, LinkChoice::direct);
  const std::vector<bool> is_healthy = healthy_sites(topology);
  const bool all_healthy =
      std::all_of(gpus.begin(), gpus.end(), [&](int gpu) { return is_healthy[at(gpu)]; });
  const bool joined = islands_of(direct).size() < 2;
  Answers answers;
  if (joined) answers.whole = search_channels(topology, gpus, LinkChoice::direct);
  if (joined && all_healthy) return answers;
  Answer all = search_channels(topology, gpus, LinkChoice::all);
  if (!joined || all.bus > answers.whole.bus) answers.whole = std::move(all);
  std::vector<int> rest;
  for (int gpu : gpus)
    if (is_healthy[at(gpu)]) rest.push_back(gpu);
  for (const auto& island : islands_of(graph_of(topology, rest, LinkChoice::direct)))
    if (island.size() > 1 && island.size() < gpus.size())
      answers.islands.push_back(search_channels(topology, island, LinkChoice::direct));
  return answers;
}

}  // namespace khoro
