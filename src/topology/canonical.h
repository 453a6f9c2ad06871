// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/topology.h"

namespace khoro {

/// Indices of all sites in an order that does not depend on theirs: by kind and machine, then by
/// what is known of them, then by what they are joined to.
std::vector<int> canonical_order(const Topology& topology);

}  // namespace khoro
