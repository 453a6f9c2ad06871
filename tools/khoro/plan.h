// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "algorithms/algorithm.h"

namespace khoro::tool {

// The parts of `khoro plan`; see commands.h.
void add_plan_list(CLI::App& plan);
void add_plan_show(CLI::App& plan);
void add_plan_verify(CLI::App& plan, int& status);

/// The algorithm that two words of a command line name. Throws invalid_argument with the names that
/// there are.
const Algorithm& algorithm_named(const std::string& collective, const std::string& algorithm);

/// The options --root and --avg of a subcommand, and the call that they make of a plan's name.
struct CallOptions {
  int root = 0;
  bool average = false;
  void add_to(CLI::App& command);
  /// Throws invalid_argument for an option that the collective does not know.
  Collective collective(CollectiveKind kind, int ranks) const;
};

}  // namespace khoro::tool
