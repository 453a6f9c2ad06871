// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/topology.h"

namespace khoro {

/// By site: the indices of the links that leave it, in order.
inline std::vector<std::vector<int>> links_leaving(const Topology& topology) {
  std::vector<std::vector<int>> leaving(topology.sites.size());
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    leaving[static_cast<std::size_t>(topology.links[i].from)].push_back(static_cast<int>(i));
  return leaving;
}

}  // namespace khoro
