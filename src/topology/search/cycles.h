// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace khoro {

/// What it costs to go from a point to another, both ways apart.
struct Costs {
  int points = 0;
  std::vector<double> values;
  explicit Costs(int count)
      : points(count), values(static_cast<std::size_t>(count) * static_cast<std::size_t>(count)) {}
  double& operator()(int from, int to) {
    return values[static_cast<std::size_t>(from * points + to)];
  }
  double operator()(int from, int to) const {
    return values[static_cast<std::size_t>(from * points + to)];
  }
};

/// An order of all points; it begins with point 0 and goes back to it.
using Cycle = std::vector<int>;

double cost_of(const Cycle& cycle, const Costs& costs);

/// Cheap cycles, each point's nearest neighbours first, improved by moving and reversing parts
/// until that helps no more: from about `starts` points, fewer where there are many. Cheapest
/// first; none twice.
std::vector<Cycle> cheap_cycles(const Costs& costs, int starts = 16);

/// The cheapest cycle of all, and for each point that may come last the cheapest with that;
/// cheapest first (Held and Karp). Takes 2^points steps: for 2 to 16 points.
std::vector<Cycle> cheapest_cycles(const Costs& costs);

}  // namespace khoro
