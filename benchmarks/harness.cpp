// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "measurement.h"
#include "options.h"
#include "ranks.h"
#include "report.h"
#include "subject.h"
#include "threads.h"

namespace khoro::benchmark {
namespace {

struct Program {
  const Collective& collective;
  const Options& options;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // Khoro's part
  int threads;
  std::atomic<bool> right{true};
};

Report::Start describe(const Program& program, khoroComm_t comm, const Gpu& gpu) {
  int ranks = 0;
  check(khoroCommCount(comm, &ranks), "khoroCommCount", comm);
  std::vector<Seat> seats(ranks);
  Seat mine{getpid(), gpu.device, "host memory"};
  if (gpu)
    check(khoroDeviceName(mine.name, sizeof mine.name, gpu.memory, gpu.device), "khoroDeviceName");
  check(khoroAllGather(&mine, seats.data(), sizeof mine, khoroUint8, comm, nullptr),
        "khoroAllGather", comm);
  return {std::string(program.collective.program), program.arguments, program.environment,
          std::move(seats), program.threads};
}

/// The life of one rank. A failure ends this rank's calls and frees those that wait for it.
void run_rank(Program& program, khoroComm_t comm) {
  int rank = -1;
  try {
    check(khoroCommUserRank(comm, &rank), "khoroCommUserRank", comm);
    Subject subject(comm, program.options);
    const Report::Start start = describe(program, comm, subject.gpu());
    std::optional<Report> report;
    if (rank == 0) report.emplace(program.options, start);
    Measurement measurement(program.collective, program.options, comm, subject,
                            report ? &*report : nullptr);
    if (!measurement.run()) program.right = false;
  } catch (const std::exception& failure) {
    program.right = false;
    fmt::print(stderr, "{}: rank {}: {}\n", program.collective.program, rank, failure.what());
    const khoroResult_t aborted = khoroCommAbort(comm);
    if (aborted != khoroSuccess)
      fmt::print(stderr, "{}: rank {}: abort: {}\n", program.collective.program, rank,
                 khoroGetErrorString(aborted));
  }
  if (khoroCommDestroy(comm) != khoroSuccess) {
    program.right = false;
    fmt::print(stderr, "{}: rank {}: destroy: {}\n", program.collective.program, rank,
               khoroGetLastError(nullptr));
  }
}

#ifdef KHORO_TEST_SWITCHES
/// On which rank a byte is to be flipped. The library has refused what is no number.
int flip_byte(const std::vector<std::string>& environment) {
  constexpr std::string_view name = "KHORO_TEST_FLIP_BYTE=";
  for (const std::string& variable : environment)
    if (variable.compare(0, name.size(), name) == 0) return std::stoi(variable.substr(name.size()));
  return -1;
}
#endif

std::vector<std::string> khoro_variables(char** environment) {
  std::vector<std::string> variables;
  for (char** variable = environment; *variable; ++variable)
    if (std::strncmp(*variable, "KHORO_", 6) == 0) variables.emplace_back(*variable);
  return variables;
}

}  // namespace

int run(const Collective& collective, int argc, char** argv, char** environment) {
  int exit_code = 0;
  const std::string name(collective.program);
  std::optional<Options> options = read_options(name, argc, argv, exit_code);
  if (!options) return exit_code;
  if (!collective.groups && options->aggregate > 1) {
    fmt::print(stderr, "{}: -m {}: its rounds need each other and cannot be one group\n", name,
               options->aggregate);
    return 2;
  }

  std::vector<khoroComm_t> comms;
  try {
    check_devices(*options);
    comms = join(*options);
  } catch (const Failure& failure) {
    fmt::print(stderr, "{}: {}\n", name, failure.what());
    return 1;
  }
  Program program{collective,
                  *options,
                  {argv, argv + argc},
                  khoro_variables(environment),
                  static_cast<int>(comms.size())};
#ifdef KHORO_TEST_SWITCHES
  options->flip_byte = flip_byte(program.environment);
#endif
  try {
    run_on_threads(comms.size(), [&](std::size_t k) { run_rank(program, comms[k]); });
  } catch (const Failure& failure) {
    fmt::print(stderr, "{}: {}\n", name, failure.what());
    for (khoroComm_t comm : comms) {
      khoroCommAbort(comm);
      khoroCommDestroy(comm);
    }
    return 1;
  }
  return program.right ? 0 : 1;
}

}  // namespace khoro::benchmark
