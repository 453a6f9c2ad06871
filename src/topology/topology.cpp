// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.h"

#include <bit>
#include <cstddef>

#include "base/hash.h"

namespace khoro {

std::uint64_t Topology::hash() const noexcept {
  std::uint64_t hash = combine(sites.size(), links.size());
  for (const Site& site : sites) hash = combine(hash, hash_text(site.name));
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
  Topology topology;
  topology.sites.push_back({"package"});
  topology.place.assign(static_cast<std::size_t>(ranks), 0);
  return topology;
}

}  // namespace khoro
