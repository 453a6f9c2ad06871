// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/graph.h"

namespace khoro {

/// Rings around the relays that all GPUs of the graph hang off alike: as many for each as links
/// that it has to a GPU, all in the same order. `most` at most; empty if no relay joins all GPUs.
std::vector<Channel> rings_of_switches(const Graph& graph, int most);

/// Rings that together use the edge from each GPU to each other one once, where one joins every
/// pair. Empty if not, or if there are no such rings, or more than `most`.
std::vector<Channel> rings_of_mesh(const Graph& graph, int most);

}  // namespace khoro
