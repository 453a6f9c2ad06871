// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "topology/topology.h"

namespace khoro {

/// Adds to the GPUs of this machine what NVML knows: numbers, compute capability, NVLink, C2C and
/// the fabric that they are part of. Does nothing where NVML is not installed; tells where it is
/// and does not work. NVML is loaded when this is called and let go before it returns.
void add_what_nvml_knows(Topology& topology, std::vector<Diagnostic>& diagnostics);

}  // namespace khoro
