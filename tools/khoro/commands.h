// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace khoro::tool {

/// Exit statuses of all subcommands.
enum : int { succeeded = 0, found_something = 1, bad_usage = 2 };

// One function per subcommand: adds it to the program. When the command line asks for it, it runs
// while the line is parsed, and leaves its exit status in `status`, which must live as long as
// `program`.
void add_info(CLI::App& program);
void add_plan(CLI::App& program, int& status);
void add_topo(CLI::App& program, int& status);
void add_status(CLI::App& program, int& status);
/// `after_dashes` is what the command line holds after its first "--".
void add_run(CLI::App& program, int& status, std::vector<std::string> after_dashes);

}  // namespace khoro::tool
