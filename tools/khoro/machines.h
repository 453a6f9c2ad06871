// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace khoro::tool {

/// Where the ranks of a plan are: how many each machine has, and whether they follow one another
/// there or are dealt out to the machines in turn; or on the GPUs of a machine that a file
/// describes.
struct Machines {
  std::vector<int> sizes;  // none: one machine
  bool dealt = false;
  std::string file;  // none: nothing is known of links

  void add_to(CLI::App& command);
  /// For where no one plan is asked for: throws invalid_argument, saying `why`, if one was given.
  void refuse(const std::string& why) const;
  /// Throws invalid_argument if the machines have another number of ranks together, or the file
  /// another number of GPUs or none at all.
  Topology topology(int ranks) const;
  /// " groups 3,1,4 dealt", " on machine.xml"; of one machine nothing.
  std::string text() const;
  bool operator==(const Machines&) const = default;
};

/// Those for which an algorithm is proved: one machine, and where it makes a difference to the
/// algorithm also many, equally large and not.
std::vector<Machines> machines_for(const Algorithm& algorithm, int ranks);

}  // namespace khoro::tool
