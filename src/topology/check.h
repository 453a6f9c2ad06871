// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "base/diagnostic.h"
#include "topology/channel.h"
#include "topology/topology.h"

namespace khoro {

/// Bytes per second on each link when all channels run at their rates.
std::vector<double> loads_of(const Topology& topology, std::span<const Channel> channels);

/// Bus bandwidth of channels between so many GPUs: the sum of the rates of rings, and (N - 1) / N
/// of that of trees, since a GPU's own data needs no link.
double bus_bandwidth(std::span<const Channel> channels, std::size_t gpus);

/// What is wrong with channels between GPUs, nothing if all is well:
/// rings pass each GPU once, trees reach each once, from where data is already; GPUs that are roots
/// of trees are all that, at equal rates; routes are connected, and pass only what relays (NICs,
/// ports and networks between machines alone); and no link carries more than it can.
std::vector<Diagnostic> check_channels(const Topology& topology, std::span<const int> gpus,
                                       std::span<const Channel> channels);

}  // namespace khoro
