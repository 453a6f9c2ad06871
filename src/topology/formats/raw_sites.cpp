// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/raw_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "topology/formats/attributes.h"

namespace khoro {
namespace {

long long number_or_last(std::string_view text) {
  return integer_of(text).value_or(std::numeric_limits<long long>::max());
}

}  // namespace

std::string SiteNames::make(SiteKind kind, int machine, std::string_view label) {
  std::string wanted(name(kind));
  if (machine != 0) wanted = fmt::format("{}/{}", machine, wanted);
  if (!label.empty()) wanted = fmt::format("{} {}", wanted, label);
  int& number = given_[wanted];
  std::string made = ++number == 1 ? wanted : fmt::format("{} #{}", wanted, number);
  while (!taken_.insert(made).second) made = fmt::format("{} #{}", wanted, ++number);
  return made;
}

bool place_ranks(Topology& topology) {
  std::vector<int> gpus = topology.sites_of(SiteKind::gpu);
  // Machines in the order of their names where they have some: not in that of their elements.
  std::map<int, std::string> hosts;
  for (const Site& site : topology.sites)
    if (site.kind == SiteKind::cpu)
      hosts[site.machine] = std::max(hosts[site.machine], std::string(site.fact("host_hash")));
  const auto order = [&](int gpu) {
    const Site& site = topology.site(gpu);
    return std::make_tuple(number_or_last(site.fact("rank")), std::string_view(hosts[site.machine]),
                           site.machine, number_or_last(site.fact("dev")), site.fact("busid"));
  };
  std::stable_sort(gpus.begin(), gpus.end(), [&](int a, int b) { return order(a) < order(b); });
  const auto rank = [&](int gpu) { return topology.site(gpu).fact("rank"); };
  const auto same = std::adjacent_find(gpus.begin(), gpus.end(), [&](int a, int b) {
    return !rank(a).empty() && number_or_last(rank(a)) == number_or_last(rank(b));
  });
  topology.place = gpus;
  return same == gpus.end();
}

}  // namespace khoro
