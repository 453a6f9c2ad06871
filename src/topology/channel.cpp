// SPDX-License-Identifier: Apache-2.0
#include "topology/channel.h"

namespace khoro {

std::string_view name(ChannelKind kind) noexcept {
  return kind == ChannelKind::ring ? "ring" : "tree";
}

std::vector<Crossing> crossings_of(const Topology& topology, const Channel& channel) {
  std::vector<Crossing> crossings;
  for (std::size_t hop = 0; hop < channel.hops.size(); ++hop) {
    int left_by = -1;
    for (int index : channel.hops[hop].route) {
      const Link& link = topology.links[static_cast<std::size_t>(index)];
      if (topology.site(link.to).kind == SiteKind::network) left_by = link.from;
      if (topology.site(link.from).kind == SiteKind::network)
        crossings.push_back({static_cast<int>(hop), left_by, link.to});
    }
  }
  return crossings;
}

}  // namespace khoro
