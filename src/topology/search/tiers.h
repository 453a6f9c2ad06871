// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/graph.h"

namespace khoro {

/// Trees between the GPUs of several parts of a graph that networks join. Parts are in a ring: what
/// a part sends its next one sends on, by whatever ports both have, until all have it; each part
/// spreads it among its GPUs by links of its own. So all data enters each part once, and as much
/// leaves as enters. The search is done once for parts that are built alike, and takes not much
/// longer for many than to write the trees down. Empty where there are no several parts, or links
/// do not join them, or there are so many GPUs that even a tree from each would be too much.
std::vector<Channel> trees_over_networks(const Graph& graph);

}  // namespace khoro
