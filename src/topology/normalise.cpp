// SPDX-License-Identifier: Apache-2.0
#include "topology/normalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "topology/canonical.h"
#include "topology/formats/raw_sites.h"
#include "topology/rates.h"
#include "topology/repair/repairs.h"

namespace khoro {
namespace {

/// Numbers machines 0, 1, ... by the first rank or the first GPU in each, then by the host's hash.
void number_machines(Topology& topology) {
  using MachineKey = std::tuple<long, std::string, std::string, int>;
  std::map<int, MachineKey> keys;
  for (const Site& site : topology.sites) {
    auto& key = keys.try_emplace(site.machine, LONG_MAX, "", "~", site.machine).first->second;
    if (const auto rank = number_of(site, "rank"); site.kind == SiteKind::gpu && rank)
      std::get<0>(key) = std::min(std::get<0>(key), *rank);
    if (site.kind == SiteKind::cpu)
      std::get<1>(key) = std::max(std::get<1>(key), std::string(site.fact("host_hash")));
    if (site.kind == SiteKind::gpu)
      std::get<2>(key) = std::min(std::get<2>(key), std::string(site.fact("busid")));
  }
  std::vector<std::pair<MachineKey, int>> order;
  for (const auto& [machine, key] : keys) order.emplace_back(key, machine);
  std::sort(order.begin(), order.end());
  std::map<int, int> number;
  for (const auto& [key, machine] : order) number.emplace(machine, static_cast<int>(number.size()));
  for (Site& site : topology.sites) site.machine = number[site.machine];
}

/// A fabric of several machines is part of the first of them.
void place_fabrics(Topology& topology) {
  std::map<int, int> first;
  for (const Link& link : topology.links)
    if (topology.site(link.from).kind == SiteKind::fabric) {
      const int machine = topology.site(link.to).machine;
      int& least = first.try_emplace(link.from, machine).first->second;
      least = std::min(least, machine);
    }
  for (const auto& [fabric, machine] : first)
    topology.sites[static_cast<std::size_t>(fabric)].machine = machine;
}

void name_sites(Topology& topology) {
  std::array<int, 7> count = {};
  for (Site& site : topology.sites)
    site.name = fmt::format("{}{}", name(site.kind), count[static_cast<std::size_t>(site.kind)]++);
}

bool in_order(const Link& one, const Link& other) noexcept {
  return std::tie(one.from, one.to, one.kind) < std::tie(other.from, other.to, other.kind);
}

}  // namespace

Repairs::Repairs(Topology broken)
    : topology(std::move(broken)), several_machines(has_several_machines(topology)) {}

void Repairs::tell(Severity severity, int site, std::string message) {
  diagnostics.push_back({0, words_for(site), std::move(message), 0, severity});
}

std::string Repairs::words_for(int site) const {
  return khoro::words_for(topology.site(site), several_machines);
}

void Repairs::remove(const std::vector<bool>& sites, const std::vector<bool>& links) {
  if (!links.empty()) {
    std::vector<Link> kept;
    for (std::size_t i = 0; i < links.size(); ++i)
      if (!links[i]) kept.push_back(topology.links[i]);
    topology.links = std::move(kept);
  }
  if (sites.empty()) return;
  std::vector<int> order;
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (!sites[i]) order.push_back(static_cast<int>(i));
  topology = topology.arranged(order);
}

bool has_several_machines(const Topology& topology) {
  return std::any_of(topology.sites.begin(), topology.sites.end(), [&](const Site& site) {
    return site.machine != topology.sites.front().machine;
  });
}

std::string words_for(const Site& site, bool several_machines) {
  std::string words(name(site.kind));
  if (site.kind == SiteKind::gpu && !site.fact("dev").empty())
    words += fmt::format(" {} at {}", site.fact("dev"), site.fact("busid"));
  else if (const std::string_view label = site.fact("name"); !label.empty())
    words += fmt::format(" {}", label);
  else if (const std::string_view bus = site.fact("busid"); !bus.empty())
    words += fmt::format(" {}", bus);
  else if (const std::string_view numa = site.fact("numaid"); !numa.empty())
    words += fmt::format(" {}", numa);
  if (several_machines) words += fmt::format(" of machine {}", site.machine);
  return words;
}

double direct_rate(const Topology& topology, int gpu) {
  double rate = 0;
  for (const Link& link : topology.links)
    if (link.from == gpu && is_direct(link.kind)) rate += link.bytes_per_second;
  return rate;
}

Normalised normalise(Topology topology) {
  number_machines(topology);
  place_fabrics(topology);
  Repairs repairs(topology.arranged(canonical_order(topology)));
  for (const auto pass : {repair_direct_links, join_fabrics, repair_pci, flatten_switches,
                          repair_ports, join_cpus, fill_rates, name_weak_gpus})
    pass(repairs);
  Topology& repaired = repairs.topology;
  repaired = repaired.arranged(canonical_order(repaired));
  std::sort(repaired.links.begin(), repaired.links.end(), in_order);
  name_sites(repaired);
  if (repaired.place.empty()) (void)place_ranks(repaired);
  return {std::move(repaired), std::move(repairs.diagnostics)};
}

}  // namespace khoro
