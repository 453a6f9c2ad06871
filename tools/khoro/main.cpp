// SPDX-License-Identifier: Apache-2.0
// The command-line program: one subcommand, one file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "commands.h"
#include "horovodrun.h"

namespace {

int run(int argc, char** argv) {
  int status = khoro::tool::succeeded;
  CLI::App program("Khoro, a runtime for collective communication", "khoro");
  program.set_version_flag("--version", "khoro " KHORO_VERSION);
  program.require_subcommand(1);
  // What comes after "--" is for the program to be run, and nothing in it for this one.
  const bool runs = argc > 1 && std::string_view(argv[1]) == "run";
  char** dashes =
      std::find_if(argv, argv + argc, [&](std::string_view word) { return runs && word == "--"; });
  std::vector<std::string> after_dashes;
  if (dashes != argv + argc) after_dashes.assign(dashes + 1, argv + argc);
  std::vector<std::string> words(argv + std::min(argc, 1), dashes);
  khoro::tool::add_run(program, status, std::move(after_dashes));
  khoro::tool::add_status(program, status);
  khoro::tool::add_plan(program, status);
  khoro::tool::add_topo(program, status);
  khoro::tool::add_info(program);
  if (runs) {
    const CLI::App& command = *program.get_subcommand("run");
    words = khoro::tool::respelled({words.begin() + 1, words.end()}, command);
    words.insert(words.begin(), "run");
  }
  std::reverse(words.begin(), words.end());  // as the parser takes them
  try {
    program.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? khoro::tool::succeeded : khoro::tool::bad_usage;
  }
  return status;
}

/// So that a plan cut short by a full disk is not taken for the whole.
int fail_of_output(const std::string& why) {
  fmt::print(stderr, "khoro: not all output could be written: {}\n", why);
  return khoro::tool::found_something;
}

/// Status as of the program.
int finish_output(int status) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  return fail_of_output(khoro::words_of_errno());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return finish_output(run(argc, argv));
  } catch (const khoro::Error& error) {
    fmt::print(stderr, "khoro: {}\n", error.what());
    return error.code() == khoro::Code::invalid_argument ? khoro::tool::bad_usage
                                                         : khoro::tool::found_something;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return fail_of_output(error.code().message());
    fmt::print(stderr, "khoro: {}\n", error.what());
    return khoro::tool::found_something;
  } catch (const std::exception& error) {
    fmt::print(stderr, "khoro: {}\n", error.what());
    return khoro::tool::found_something;
  }
}
