// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.h"

namespace khoro {

/// Whether kernels of one GPU are to reach the memory of another one by themselves: over direct
/// links, C2C, or PCIe below one CPU, as NCCL and RCCL have it unless their settings say otherwise.
/// What another GPU would have to relay is not reached.
bool have_peer_access(const Topology& topology, int one, int other);

/// Why that is so for two GPUs although their best path leads through CPUs; empty if it is not.
const char* far_peer_access(const Topology& topology, int gpu);

}  // namespace khoro
