// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sweep/space.h"

namespace khoro::test {

/// What has been played and what was left out, for who adds up the jobs of a sweep.
class Tally {
 public:
  explicit Tally(const Space& space) : space_(space), pairs_(space) {
    for (const Space::Axis& axis : space.axes) played_.emplace_back(axis.values.size());
  }

  void played(const Point& point) {
    pairs_.add(point);
    for (std::size_t axis = 0; axis < point.size(); ++axis)
      ++played_[axis][static_cast<std::size_t>(point[axis])];
  }
  void skipped(const Space::Rule& rule, std::uint64_t points) { skipped_[rule.why] += points; }

  /// Lines of words between tabs: "value AXIS VALUE POINTS", "pair AXIS VALUE AXIS VALUE" and
  /// "skipped POINTS WHY".
  void write(const std::string& path) const {
    std::ofstream file(path);
    for (std::size_t axis = 0; axis < played_.size(); ++axis)
      for (std::size_t value = 0; value < played_[axis].size(); ++value)
        file << "value\t" << words(axis, static_cast<int>(value)) << '\t' << played_[axis][value]
             << '\n';
    for_each_pair(space_, [&](const Pair& pair) {
      if (pairs_.holds(pair))
        file << "pair\t" << words(pair.axis, pair.value) << '\t'
             << words(pair.other_axis, pair.other_value) << '\n';
    });
    for (const auto& [why, points] : skipped_) file << "skipped\t" << points << '\t' << why << '\n';
  }

 private:
  std::string words(std::size_t axis, int value) const {
    return space_.axes[axis].name + '\t' +
           space_.axes[axis].values[static_cast<std::size_t>(value)];
  }

  const Space& space_;
  PairSet pairs_;
  std::vector<std::vector<std::uint64_t>> played_;
  std::map<std::string, std::uint64_t> skipped_;
};

}  // namespace khoro::test
