// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/topology.h"

namespace khoro::tool {

/// One line on whether two GPUs reach each other's memory, or a NIC that of a GPU, on the best path
/// between them: what NCCL and RCCL do unless their settings say otherwise, and why. Empty for
/// other pairs of sites. A port stands for its NIC. The sites reach each other.
std::string access_between(const Topology& topology, int one, int other);

}  // namespace khoro::tool
