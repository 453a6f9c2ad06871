// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "topology/topology.h"

namespace khoro {

struct Normalised {
  Topology topology;
  /// Notes and warnings; the topology can be used whatever they say.
  std::vector<Diagnostic> diagnostics;
};

/// A machine as it is, of what a reader or a detector took down: links that cannot be are gone, odd
/// speeds are repaired, what is one is joined, every link has a rate, and sites have short names
/// and an order that does not depend on the order in which they came. Each repair is told.
/// What is normal stays as it is.
Normalised normalise(Topology topology);

/// Rates of direct links that reach a GPU, NVLink and xGMI together, in bytes per second one way.
double direct_rate(const Topology& topology, int gpu);

}  // namespace khoro
