// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "topology/reading.h"

namespace khoro {

/// Reads a topology in whichever form it is: the project's own text, NCCL's topology XML or
/// hwloc's XML. The text decides, not a name.
Reading read_topology(std::string_view text);

}  // namespace khoro
