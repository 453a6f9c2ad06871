// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/search/parts.h"

namespace khoro {

/// How data that GPUs of a part have reaches all others of it.
struct Spread {
  struct Tree {
    /// In vertices and edges of the part.
    std::vector<Hop> hops;
    /// Of the data of its root that it carries.
    double share = 0;
  };
  std::vector<std::vector<Tree>> trees;  // by GPU
  /// How much of what was asked for the links carry, at most 1.
  double scale = 0;
};

/// `rates` of data, in bytes per second, that begins at each GPU; `taken` of each edge by other
/// data that grows and shrinks with it. Stars where links carry them, else paths along rings, else
/// trees that are packed.
Spread spread(const GraphPart& part, const std::vector<double>& rates,
              const std::vector<double>& taken);

}  // namespace khoro
