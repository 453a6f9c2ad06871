// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace khoro::tool {

// What those who come from horovodrun write is understood by `khoro run`, where there is something
// like it.

/// The words of a command line after its first, "run", with -np spelled as the -n of `command`;
/// those of the program stay as they are.
std::vector<std::string> respelled(std::vector<std::string> words, const CLI::App& command);

/// Checks what -H says, "HOST:SLOTS,...": every host must be this machine, and have slots for so
/// many processes in all; without a number it has one. Throws invalid_argument.
void check_hosts(const std::string& hosts, int processes);

/// What to do in place of an option that only horovodrun has, "" for any other.
std::string_view instead_of(std::string_view option);

}  // namespace khoro::tool
