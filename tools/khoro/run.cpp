// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/settings.h"
#include "commands.h"
#include "horovodrun.h"
#include "launch.h"

namespace khoro::tool {
namespace {

/// As shells and env(1) have it.
constexpr int cannot_run = 127;

/// Unless it is there. Throws `Error`.
void make_directory(const std::string& path) {
  std::error_code fault;
  std::filesystem::create_directories(path, fault);
  if (fault || !std::filesystem::is_directory(path))
    throw Error(Code::invalid_argument,
                fmt::format("--output-dir: cannot make the directory '{}': {}", path,
                            fault ? fault.message() : "something else has that name"));
}

struct Run {
  Job job;
  bool no_tag = false;
  bool tag = false;
  double timeout = 0;
  std::optional<std::string> hosts;

  std::vector<std::string> after_dashes;

  int run(std::vector<std::string> before_dashes) {
    if (!before_dashes.empty() && before_dashes.front().starts_with('-')) {
      const std::string& option = before_dashes.front();
      const std::string_view instead = instead_of(option);
      throw Error(Code::invalid_argument,
                  fmt::format("khoro run has no option '{}'; {}", option,
                              instead.empty() ? "a program of that name comes after --" : instead));
    }
    if (hosts) check_hosts(*hosts, job.processes);
    job.command = std::move(before_dashes);
    // A program named before the dashes gets them as its own argument.
    if (!job.command.empty() && !after_dashes.empty()) job.command.push_back("--");
    job.command.insert(job.command.end(), after_dashes.begin(), after_dashes.end());
    if (job.command.empty() || job.command.front().empty())
      throw Error(Code::invalid_argument, "no program is named: khoro run -n 2 -- PROGRAM");
    if (!job.output_directory.empty()) make_directory(job.output_directory);
    // Pipes must not land where standard input, output and error belong.
    int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    while (null >= 0 && null <= STDERR_FILENO) null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) ::close(null);
    LaunchOptions options;
    options.tags = !no_tag;
    options.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout));
    try {
      return Launch(job, options).run();
    } catch (const Error& error) {
      fmt::print(stderr, "khoro run: {}\n", error.what());
      return cannot_run;
    }
  }
};

}  // namespace

void add_run(CLI::App& program, int& status, std::vector<std::string> after_dashes) {
  CLI::App* command = program.add_subcommand("run", "Start a program as the ranks of a job");
  auto run = std::make_shared<Run>();  // lives as long as the command
  run->after_dashes = std::move(after_dashes);
  command
      ->add_option("-n,--processes,--num-proc", run->job.processes,
                   "number of processes; -np is the same")
      ->required()
      ->check(CLI::Range(1, 4096))
      ->type_name("P");
  command
      ->add_option("-H,--hosts", run->hosts,
                   "where they run, for who comes from horovodrun: all on this machine")
      ->type_name("HOST:SLOTS,...");
  command->add_option("--threads", run->job.threads, "ranks that each process holds, one a thread")
      ->check(CLI::Range(1, 4096))
      ->type_name("T");
  command
      ->add_option("--transport", run->job.transport,
                   "what carries the messages: sets KHORO_TRANSPORT for the ranks")
      ->check([](const std::string& text) {
        try {
          Settings().choose("KHORO_TRANSPORT=" + text);
        } catch (const Error& error) {
          return std::string(error.what());
        }
        return std::string();
      })
      ->type_name("NAME");
  command->add_option("--timeout", run->timeout, "seconds after which the job is ended")
      ->check(CLI::Range(0.001, 1e8))
      // NaN is in every range.
      ->check([](const std::string& text) {
        const bool none = std::isnan(std::strtod(text.c_str(), nullptr));
        return none ? text + " is not a number of seconds" : std::string();
      })
      ->type_name("S");
  auto* tag = command->add_flag("--tag-output", run->tag,
                                "put [rank] in front of each line of output (the default)");
  command->add_flag("--no-tag", run->no_tag, "pass lines on as they are")->excludes(tag);
  command
      ->add_option("--output-dir", run->job.output_directory,
                   "let each process write to DIR/rank-RANK.out and .err, as it is")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("names no directory") : std::string();
      })
      ->excludes(tag)
      ->type_name("DIR");
  command->prefix_command();
  command->footer("Then the program and its arguments, after -- where they may be mistaken.");
  command->callback([command, run, &status] { status = run->run(command->remaining()); });
}

}  // namespace khoro::tool
