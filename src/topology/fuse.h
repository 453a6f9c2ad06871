// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.h"

namespace khoro {

/// So many machines that are built alike, with a network between them that is no limit itself: it
/// joins the ports of all, each at its own rate. Ports of what hangs off no bus take part only
/// where there are no others. Normalised, as `one` has to be. `machines` is at least 1.
Topology fused(const Topology& one, int machines);

}  // namespace khoro
