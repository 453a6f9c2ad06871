// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/search/cycles.h"

namespace khoro {

/// Cycles through all points that together go from each point to each other one exactly once: one
/// fewer than points. Empty where there are none, for 4 and 6 points (Tillson 1980) and for fewer
/// than 2, and for more than 34, which nobody has needed.
std::vector<Cycle> hamiltonian_cycles(int points);

}  // namespace khoro
