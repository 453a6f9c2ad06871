// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "values.h"

namespace khoro::benchmark {

/// Which rank's time a row shows; the values are nccl-tests'.
enum class Average { rank_0 = 0, mean = 1, least = 2, most = 3 };

/// What nccl-tests' command line says, and what ours adds. Sizes are in bytes.
struct Options {
  static constexpr int all_roots = -1;

  khoroMemory_t device = khoroMemoryHost;  // where the buffers of calls are
  std::optional<int> threads;              // not said: what the launcher says, else 1
  std::size_t min_bytes = 32 << 20;
  std::size_t max_bytes = 32 << 20;
  std::size_t step_bytes = 1 << 20;
  std::size_t step_factor = 1;  // 1: step by bytes
  int iterations = 20;
  int warmups = 5;
  int aggregate = 1;
  int cycles = 1;  // 0: without end
  int checks = 1;
  std::vector<TypeRow> types;
  std::vector<OpRow> ops;
  int root = 0;  // or all_roots, in turn
  Average average = Average::mean;
  bool parallel_init = false;
  bool blocking = false;
  bool cpu_time = false;
  bool timestamps = false;
  bool latency = false;
  bool limits = false;
  bool registers = false;           // buffers of khoroMemAlloc, and registered
  std::optional<bool> null_stream;  // calls have no stream, and block; not said: those on hosts
  std::int64_t timeout_s = 0;       // 0: Khoro's default deadline
  std::string json_file;            // empty: none
  int flip_byte = -1;  // the rank; of the environment, and only in builds made for tests

  /// The size after `bytes`, or nothing when the scan is over.
  std::optional<std::size_t> after(std::size_t bytes) const noexcept;
};

/// The word of --device for it.
std::string_view word_of(khoroMemory_t memory) noexcept;

/// Reads the command line. Where the program is to end at once (--help, a mistake), it prints and
/// returns the exit code in `exit_code` and no options.
std::optional<Options> read_options(const std::string& program, int argc, char** argv,
                                    int& exit_code);

}  // namespace khoro::benchmark
