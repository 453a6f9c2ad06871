// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "topology/reading.h"

namespace khoro {

/// Reads NCCL's topology XML, version 1 or RCCL's version 2, of one machine or of several. Sites
/// come in the order of the text, fabrics last; rates are not filled in. What a file leaves out
/// gets NCCL's default or stays unknown, each with a diagnostic; links that cannot be are dropped
/// with a warning.
Reading read_nccl_xml(std::string_view text);

/// Writes what NCCL reads: version 1, or 2 where there is xGMI. Rates, latencies and links between
/// CPUs have no place in it. Throws `Error` if devices are nested deeper than readers take.
std::string write_nccl_xml(const Topology& topology);

}  // namespace khoro
