// SPDX-License-Identifier: Apache-2.0
// The command-line program: one subcommand, one file.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "base/error.h"
#include "commands.h"

namespace {

int run(int argc, char** argv) {
  int status = khoro::tool::succeeded;
  CLI::App program("Khoro, a runtime for collective communication", "khoro");
  program.set_version_flag("--version", "khoro " KHORO_VERSION);
  program.require_subcommand(1);
  khoro::tool::add_plan(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? khoro::tool::succeeded : khoro::tool::bad_usage;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const khoro::Error& error) {
    fmt::print(stderr, "khoro: {}\n", error.what());
    return error.code() == khoro::Code::invalid_argument ? khoro::tool::bad_usage
                                                         : khoro::tool::found_something;
  } catch (const std::exception& error) {
    fmt::print(stderr, "khoro: {}\n", error.what());
    return khoro::tool::found_something;
  }
}
