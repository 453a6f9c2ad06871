// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.h"

#include <array>
#include <bit>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace khoro {
namespace {

template <std::size_t size, class Kind>
std::string_view name_in(const std::array<std::string_view, size>& names, Kind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < size ? names[index] : "?";
}

}  // namespace

std::string_view name(SiteKind kind) noexcept {
  static constexpr std::array<std::string_view, 7> names = {"cpu",  "bridge", "gpu",    "nic",
                                                            "port", "fabric", "network"};
  return name_in(names, kind);
}

std::string_view name(LinkKind kind) noexcept {
  static constexpr std::array<std::string_view, 8> names = {"pci",    "nvlink", "xgmi", "c2c",
                                                            "socket", "inside", "port", "network"};
  return name_in(names, kind);
}

std::string_view Site::fact(std::string_view key) const {
  const auto found = facts.find(key);
  return found == facts.end() ? std::string_view() : found->second;
}

std::vector<int> Topology::sites_of(SiteKind kind) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (sites[i].kind == kind) found.push_back(static_cast<int>(i));
  return found;
}

int Topology::find(std::string_view site_name) const noexcept {
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (sites[i].name == site_name) return static_cast<int>(i);
  return -1;
}

int Topology::add(Site site) {
  sites.push_back(std::move(site));
  return static_cast<int>(sites.size()) - 1;
}

void Topology::connect(int one, int other, Link both) {
  both.from = one;
  both.to = other;
  links.push_back(both);
  std::swap(both.from, both.to);
  links.push_back(both);
}

std::vector<int> Topology::parents() const {
  std::vector<std::vector<int>> beside(sites.size());
  for (const Link& link : links)
    if (link.kind == LinkKind::pci || link.kind == LinkKind::inside || link.kind == LinkKind::port)
      beside[static_cast<std::size_t>(link.from)].push_back(link.to);
  std::vector<int> parents(sites.size(), -1);
  std::vector<bool> seen(sites.size());
  std::deque<int> next;
  for (const int cpu : sites_of(SiteKind::cpu)) {
    next.push_back(cpu);
    seen[static_cast<std::size_t>(cpu)] = true;
  }
  for (; !next.empty(); next.pop_front())
    for (const int child : beside[static_cast<std::size_t>(next.front())]) {
      if (seen[static_cast<std::size_t>(child)]) continue;
      seen[static_cast<std::size_t>(child)] = true;
      parents[static_cast<std::size_t>(child)] = next.front();
      next.push_back(child);
    }
  return parents;
}

int Topology::cpu_of(int index) const {
  const std::vector<int> up = parents();
  while (index >= 0 && site(index).kind != SiteKind::cpu)
    index = up[static_cast<std::size_t>(index)];
  return index;
}

Topology Topology::arranged(const std::vector<int>& order) const {
  std::vector<int> now(sites.size(), -1);
  Topology arranged;
  for (const int index : order)
    now[static_cast<std::size_t>(index)] = arranged.add(sites[static_cast<std::size_t>(index)]);
  const auto index_now = [&](int index) { return now[static_cast<std::size_t>(index)]; };
  for (Link link : links) {
    link.from = index_now(link.from);
    link.to = index_now(link.to);
    if (link.from >= 0 && link.to >= 0) arranged.links.push_back(link);
  }
  for (const int index : place)
    if (index_now(index) >= 0) arranged.place.push_back(index_now(index));
  return arranged;
}

std::uint64_t Topology::hash() const noexcept {
  std::uint64_t hash = combine(sites.size(), links.size());
  for (const Site& site : sites) {
    hash = combine(hash, static_cast<std::uint64_t>(site.kind));
    hash = combine(hash, hash_text(site.name));
    hash = combine(hash, static_cast<std::uint64_t>(site.machine));
    for (const auto& [key, value] : site.facts)
      hash = combine(combine(hash, hash_text(key)), hash_text(value));
  }
  for (const Link& link : links) {
    hash = combine(hash, static_cast<std::uint64_t>(link.from));
    hash = combine(hash, static_cast<std::uint64_t>(link.to));
    hash = combine(hash, static_cast<std::uint64_t>(link.kind));
    hash = combine(hash, static_cast<std::uint64_t>(link.count));
    hash = combine(hash, std::bit_cast<std::uint64_t>(link.bytes_per_second));
    hash = combine(hash, std::bit_cast<std::uint64_t>(link.latency_seconds));
  }
  for (int site : place) hash = combine(hash, static_cast<std::uint64_t>(site));
  return hash;
}

Topology Topology::one_machine(int ranks) {
  return machines(std::vector<int>(static_cast<std::size_t>(ranks), 0));
}

Topology Topology::machines(const std::vector<int>& machine_of_rank) {
  Topology topology;
  std::unordered_map<int, int> sites;  // by machine
  for (int machine : machine_of_rank) {
    const auto [site, is_new] = sites.try_emplace(machine, static_cast<int>(topology.sites.size()));
    if (is_new) topology.add({SiteKind::cpu, "package" + std::to_string(machine), machine, {}});
    topology.place.push_back(site->second);
  }
  return topology;
}

}  // namespace khoro
