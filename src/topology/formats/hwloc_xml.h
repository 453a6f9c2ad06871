// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "topology/reading.h"

namespace khoro {

/// Reads the XML of hwloc 1, 2 and 3, without hwloc: NUMA nodes with CPUs, GPUs and NICs with the
/// switches above them, and the links between GPUs that its matrices tell. What a switch shows as
/// one port up and several down becomes one bridge; root ports, which limit nothing, are left out.
Reading read_hwloc_xml(std::string_view text);

}  // namespace khoro
