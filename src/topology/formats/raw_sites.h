// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace khoro {

/// Names for the sites of a topology that a reader makes.
class SiteNames {
 public:
  /// "gpu 0000:06:00.0"; "2/gpu 0000:06:00.0" on machine 2; with a number behind it if it is taken.
  std::string make(SiteKind kind, int machine, std::string_view label);

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> given_;
};

/// Gives a rank to each GPU: in the order of their "rank" facts, GPUs without one last, then by
/// machine and "dev". False if two of them claim the same rank.
bool place_ranks(Topology& topology);

}  // namespace khoro
