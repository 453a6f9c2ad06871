// SPDX-License-Identifier: Apache-2.0
#include "topology/graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "topology/index.h"

namespace khoro {
namespace {

/// Bytes per second, a hundred times what the fastest links have. Sums over all links of a machine,
/// times its GPUs, fit into 64 bits.
constexpr double most_capacity = 1e14;

bool comes_before(const Topology& topology, int one, int other) {
  const Site& a = topology.site(one);
  const Site& b = topology.site(other);
  return std::make_tuple(a.kind, a.name.size(), std::string_view(a.name)) <
         std::make_tuple(b.kind, b.name.size(), std::string_view(b.name));
}

/// Builds the graph: all vertices and edges first, then without those that do not matter.
class Builder {
 public:
  Builder(const Topology& topology, std::span<const int> gpus, LinkChoice links);
  Graph build();

 private:
  using Key = std::pair<int, std::string>;  // a site, and the rail of a network

  void number_ports();
  bool is_network(int site) const { return topology_.site(site).kind == SiteKind::network; }
  bool relays(const Site& site) const;
  bool chosen(const Link& link) const;
  void add_vertices(std::span<const int> gpus);
  void add_edges();
  std::string rail_of(const Link& link) const;
  int vertex_of(int site, const Link& link) const;
  bool leads_one_way(int vertex) const;
  bool shorten(int vertex);
  Graph without_rest() const;
  void number_parts(Graph& graph) const;

  const Topology& topology_;
  LinkChoice links_;
  bool across_machines_ = false;
  std::map<int, int> index_of_port_;  // of those of its machine
  std::vector<Key> keys_;
  std::vector<int> vertex_of_site_;  // -1: none; networks are in
  std::map<Key, int> vertex_of_rail_;
  int gpus_ = 0;
  std::vector<Graph::Edge> edges_;  // capacity 0: removed
  std::vector<std::vector<int>> touching_;
};

Builder::Builder(const Topology& topology, std::span<const int> gpus, LinkChoice links)
    : topology_(topology), links_(links) {
  for (int gpu : gpus)
    across_machines_ |= topology.site(gpu).machine != topology.site(gpus.front()).machine;
  number_ports();
  add_vertices(gpus);
  add_edges();
}

/// Ports that lead to a network, by their order in each machine.
void Builder::number_ports() {
  std::vector<int> ports;
  for (const Link& link : topology_.links)
    if (topology_.site(link.to).kind == SiteKind::network) ports.push_back(link.from);
  std::sort(ports.begin(), ports.end(),
            [&](int one, int other) { return comes_before(topology_, one, other); });
  std::map<int, int> count;  // by machine
  for (int port : ports)
    if (!index_of_port_.contains(port))
      index_of_port_[port] = count[topology_.site(port).machine]++;
}

bool Builder::relays(const Site& site) const {
  switch (site.kind) {
    case SiteKind::fabric:
      return true;
    case SiteKind::cpu:
    case SiteKind::bridge:
      return links_ == LinkChoice::all;
    case SiteKind::nic:
    case SiteKind::port:
    case SiteKind::network:
      return links_ == LinkChoice::all && across_machines_;
    case SiteKind::gpu:
      return false;  // but for those of the set
  }
  return false;
}

bool Builder::chosen(const Link& link) const {
  if (link.from == link.to || link.bytes_per_second < 1) return false;
  if (links_ == LinkChoice::all) return true;
  // The halves of a split GPU are joined inside.
  return is_direct(link.kind) ||
         (link.kind == LinkKind::inside && topology_.site(link.from).kind == SiteKind::gpu &&
          topology_.site(link.to).kind == SiteKind::gpu);
}

/// A network has a vertex for each rail of the ports that it joins.
std::string Builder::rail_of(const Link& link) const {
  for (int end : {link.from, link.to}) {
    if (topology_.site(end).kind != SiteKind::port) continue;
    const std::string_view rail = topology_.site(end).fact("rail");
    if (!rail.empty()) return std::string(rail);
    const auto index = index_of_port_.find(end);
    return index == index_of_port_.end() ? "" : "port " + std::to_string(index->second);
  }
  return {};
}

void Builder::add_vertices(std::span<const int> gpus) {
  for (int gpu : in_order(topology_, gpus)) keys_.push_back({gpu, {}});
  gpus_ = static_cast<int>(keys_.size());
  std::vector<Key> rest;
  for (int i = 0; i < static_cast<int>(topology_.sites.size()); ++i)
    if (relays(topology_.site(i)) && topology_.site(i).kind != SiteKind::network)
      rest.push_back({i, {}});
  for (const Link& link : topology_.links)
    if (topology_.site(link.to).kind == SiteKind::network && relays(topology_.site(link.to)))
      rest.push_back({link.to, rail_of(link)});
  std::sort(rest.begin(), rest.end(), [&](const Key& a, const Key& b) {
    if (a.first != b.first) return comes_before(topology_, a.first, b.first);
    return std::make_pair(a.second.size(), a.second) < std::make_pair(b.second.size(), b.second);
  });
  rest.erase(std::unique(rest.begin(), rest.end()), rest.end());
  keys_.insert(keys_.end(), rest.begin(), rest.end());
  vertex_of_site_.assign(topology_.sites.size(), -1);
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (is_network(keys_[i].first))
      vertex_of_rail_[keys_[i]] = static_cast<int>(i);
    else
      vertex_of_site_[at(keys_[i].first)] = static_cast<int>(i);
}

int Builder::vertex_of(int site, const Link& link) const {
  if (!is_network(site)) return vertex_of_site_[at(site)];
  const auto found = vertex_of_rail_.find({site, rail_of(link)});
  return found == vertex_of_rail_.end() ? -1 : found->second;
}

void Builder::add_edges() {
  for (int i = 0; i < static_cast<int>(topology_.links.size()); ++i) {
    const Link& link = topology_.links[at(i)];
    if (!chosen(link)) continue;
    const int from = vertex_of(link.from, link);
    const int to = vertex_of(link.to, link);
    if (from < 0 || to < 0) continue;
    edges_.push_back({from,
                      to,
                      static_cast<std::int64_t>(std::min(link.bytes_per_second, most_capacity)),
                      {i},
                      i,
                      std::max(link.count, 1)});
  }
  const auto key = [&](const Graph::Edge& edge) {
    const Link& link = topology_.links[at(edge.links.front())];
    return std::make_tuple(edge.from, edge.to, link.kind, -edge.capacity, link.count);
  };
  std::stable_sort(edges_.begin(), edges_.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  touching_.resize(keys_.size());
  for (int i = 0; i < static_cast<int>(edges_.size()); ++i)
    for (int end : {edges_[at(i)].from, edges_[at(i)].to}) touching_[at(end)].push_back(i);
}

/// Whether data can only enter, or only leave.
bool Builder::leads_one_way(int vertex) const {
  bool in = false, out = false;
  for (int i : touching_[at(vertex)]) {
    const Graph::Edge& edge = edges_[at(i)];
    if (edge.capacity > 0) (edge.from == vertex ? out : in) = true;
  }
  return in != out;
}

/// Takes a relay away that leads nowhere, or between two vertices only, but no network between two
/// machines. True if it did.
bool Builder::shorten(int vertex) {
  if (leads_one_way(vertex)) {
    for (int i : touching_[at(vertex)]) edges_[at(i)].capacity = 0;
    touching_[at(vertex)].clear();
    return true;
  }
  std::array<std::vector<int>, 2> in, out;  // by neighbour
  std::vector<int> neighbours;
  for (int i : touching_[at(vertex)]) {
    const Graph::Edge& edge = edges_[at(i)];
    if (edge.capacity == 0) continue;
    const int other = edge.from == vertex ? edge.to : edge.from;
    const auto found = std::find(neighbours.begin(), neighbours.end(), other);
    const auto index = static_cast<std::size_t>(found - neighbours.begin());
    if (index == 2) return false;
    if (found == neighbours.end()) neighbours.push_back(other);
    (edge.from == vertex ? out : in)[index].push_back(i);
  }
  for (const auto* side : {&in, &out})
    for (const auto& some : *side)
      if (some.size() > 1 && neighbours.size() == 2) return false;
  if (neighbours.empty()) return false;
  if (is_network(keys_[at(vertex)].first) && neighbours.size() == 2) return false;
  for (std::size_t side : {0U, 1U}) {
    if (in[side].empty() || out[1 - side].empty()) continue;
    const Graph::Edge& first = edges_[at(in[side].front())];
    const Graph::Edge& second = edges_[at(out[1 - side].front())];
    const Graph::Edge& slower = second.capacity < first.capacity ? second : first;
    Graph::Edge both{first.from,  second.to,      slower.capacity,
                     first.links, slower.slowest, slower.count};
    both.links.insert(both.links.end(), second.links.begin(), second.links.end());
    for (int end : {both.from, both.to})
      touching_[at(end)].push_back(static_cast<int>(edges_.size()));
    edges_.push_back(std::move(both));
  }
  for (int i : touching_[at(vertex)]) edges_[at(i)].capacity = 0;
  touching_[at(vertex)].clear();
  return true;
}

Graph Builder::without_rest() const {
  Graph graph;
  graph.gpus = gpus_;
  std::vector<int> number(keys_.size(), -1);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool stays = std::any_of(touching_[i].begin(), touching_[i].end(),
                                   [&](int edge) { return edges_[at(edge)].capacity > 0; });
    if (!stays && i >= at(gpus_)) continue;
    number[i] = graph.vertices();
    graph.sites.push_back(keys_[i].first);
  }
  for (const Graph::Edge& edge : edges_)
    if (edge.capacity > 0)
      graph.edges.push_back({number[at(edge.from)], number[at(edge.to)], edge.capacity, edge.links,
                             edge.slowest, edge.count});
  std::stable_sort(graph.edges.begin(), graph.edges.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.from, a.to) < std::make_pair(b.from, b.to);
  });
  graph.leaving.resize(graph.sites.size());
  for (std::size_t i = 0; i < graph.edges.size(); ++i)
    graph.leaving[at(graph.edges[i].from)].push_back(static_cast<int>(i));
  number_parts(graph);
  return graph;
}

/// Relays that no GPU reaches are in no part: there is nothing that they could relay.
void Builder::number_parts(Graph& graph) const {
  graph.part.assign(graph.sites.size(), -1);
  int parts = 0;
  for (int first = 0; first < graph.gpus; ++first) {
    if (graph.part[at(first)] >= 0) continue;
    std::vector<int> next{first};
    graph.part[at(first)] = parts;
    while (!next.empty()) {
      const int vertex = next.back();
      next.pop_back();
      for (int index : graph.leaving[at(vertex)]) {
        const int to = graph.edge(index).to;
        if (graph.part[at(to)] >= 0 || is_network(graph.site(to))) continue;
        graph.part[at(to)] = parts;
        next.push_back(to);
      }
    }
    ++parts;
  }
}

Graph Builder::build() {
  for (bool again = true; again;) {
    again = false;
    for (int vertex = gpus_; vertex < static_cast<int>(keys_.size()); ++vertex)
      again |= shorten(vertex);
  }
  return without_rest();
}

}  // namespace

std::string_view name(LinkChoice links) noexcept {
  return links == LinkChoice::direct ? "direct" : "all";
}

int Graph::parts() const noexcept {
  return part.empty() ? 0 : *std::max_element(part.begin(), part.end()) + 1;
}

LinkPath Graph::route(std::span<const int> path) const {
  LinkPath links;
  for (int index : path)
    links.insert(links.end(), edge(index).links.begin(), edge(index).links.end());
  return links;
}

std::vector<int> in_order(const Topology& topology, std::span<const int> gpus) {
  std::vector<int> sorted(gpus.begin(), gpus.end());
  for (int gpu : sorted)
    if (gpu < 0 || at(gpu) >= topology.sites.size() || topology.site(gpu).kind != SiteKind::gpu)
      throw Error(Code::invalid_argument,
                  "site " + std::to_string(gpu) + " of the topology is no GPU: name GPUs alone");
  std::sort(sorted.begin(), sorted.end(),
            [&](int one, int other) { return comes_before(topology, one, other); });
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw Error(Code::invalid_argument,
                topology.site(*twice).name + " is named twice: name each GPU once");
  return sorted;
}

Graph graph_of(const Topology& topology, std::span<const int> gpus, LinkChoice links) {
  return Builder(topology, in_order(topology, gpus), links).build();
}

}  // namespace khoro
