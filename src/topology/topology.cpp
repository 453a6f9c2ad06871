// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.h"

#include <bit>
#include <unordered_map>

#include "base/hash.h"

namespace khoro {

std::uint64_t Topology::hash() const noexcept {
  std::uint64_t hash = combine(sites.size(), links.size());
  for (const Site& site : sites) {
    hash = combine(hash, hash_text(site.name));
    hash = combine(hash, static_cast<std::uint64_t>(site.machine));
  }
  for (const Link& link : links) {
    hash = combine(hash, static_cast<std::uint64_t>(link.from));
    hash = combine(hash, static_cast<std::uint64_t>(link.to));
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
    if (is_new) topology.sites.push_back({"package", machine});
    topology.place.push_back(site->second);
  }
  return topology;
}

}  // namespace khoro
