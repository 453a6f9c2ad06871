// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/search/parts.h"

namespace khoro {

/// How data comes from a door to a GPU of the part, and back: edges of the part, in order.
struct Gate {
  int door = 0;
  int gpu = 0;
  std::vector<int> in;
  std::vector<int> out;
  /// Bytes per second that all gates of the part can have at once, each way; equal doors have equal
  /// shares of what they have in common.
  double rate = 0;
};

/// From each door to the GPUs nearest to it, in the order of the doors, or to all GPUs where the
/// nearest cannot take what doors carry. Doors that are near to the same GPUs part these among
/// them. Empty where a door leads to no GPU.
std::vector<Gate> gates_of(const Graph& whole, const GraphPart& part);

}  // namespace khoro
