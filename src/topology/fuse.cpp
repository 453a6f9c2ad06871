// SPDX-License-Identifier: Apache-2.0
#include "topology/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "topology/normalise.h"

namespace khoro {
namespace {

/// The ports by which a machine is left.
std::vector<int> ways_out(const Topology& topology) {
  const std::vector<int> parents = topology.parents();
  std::vector<int> all = topology.sites_of(SiteKind::port), real;
  std::copy_if(all.begin(), all.end(), std::back_inserter(real), [&](int port) {
    const int nic = parents[static_cast<std::size_t>(port)];
    return nic >= 0 && !topology.site(nic).fact("busid").empty();
  });
  return real.empty() ? all : real;
}

int machines_of(const Topology& topology) {
  int most = 0;
  for (const Site& site : topology.sites) most = std::max(most, site.machine);
  return most + 1;
}

}  // namespace

Topology fused(const Topology& one, int machines) {
  if (machines == 1) return one;
  const int sites = static_cast<int>(one.sites.size()), step = machines_of(one);
  const std::vector<int> out = ways_out(one);
  Topology all;
  for (int copy = 0; copy < machines; ++copy) {
    const int first = copy * sites;
    for (Site site : one.sites) {
      site.name = fmt::format("{}/{}", copy, site.name);
      site.machine += copy * step;
      site.facts.erase("rank");  // every machine has the same ones
      all.add(std::move(site));
    }
    for (Link link : one.links) {
      link.from += first;
      link.to += first;
      all.links.push_back(link);
    }
    for (const int site : one.place) all.place.push_back(site + first);
  }
  const int network = all.add({SiteKind::network, "network", 0, {}});
  for (int copy = 0; copy < machines; ++copy)
    for (const int port : out)
      all.connect(copy * sites + port, network, {.kind = LinkKind::network});
  return normalise(std::move(all)).topology;
}

}  // namespace khoro
