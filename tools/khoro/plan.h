// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

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
  std::optional<int> root;
  bool average = false;
  void add_to(CLI::App& command);
  /// For where no one call is asked for: throws invalid_argument, saying `why`, if one was given.
  void refuse(std::string_view why) const;
  /// Throws invalid_argument for an option that the collective does not know.
  Collective collective(CollectiveKind kind, int ranks) const;
};

}  // namespace khoro::tool
