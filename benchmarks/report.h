// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace khoro::benchmark {

/// One rank's share of a measurement; all of it travels as doubles, which hold it exactly.
struct Sample {
  double seconds;
  double cpu_seconds;
  double wrong;        // elements
  double first_wrong;  // element of the output; meaningless while wrong is 0
};

/// Of the timed iterations, each as long as on the rank that took longest; seconds per call.
struct Latency {
  double p50;
  double p99;
  double most;
};

/// Where a rank is.
struct Seat {
  std::int64_t process;
  std::int64_t device;  // -1: on the host
  char name[112];       // of the device, "NVIDIA H200 at 0000:1b:00.0"; cut off
};

/// Half a row: out of place or in place.
struct Result {
  double seconds;
  double algorithm_bandwidth;  // 1e9 bytes per second
  double bus_bandwidth;
  std::optional<std::uint64_t> wrong;  // nothing: not checked
  std::vector<int> wrong_ranks;
  std::optional<Latency> latency;  // nothing: not asked for
  std::optional<double> limit;     // seconds; nothing: not asked for
};

struct Row {
  std::size_t bytes;
  std::size_t count;
  std::string_view type;
  std::string_view op;
  int root;  // -1: none
  Result out_of_place;
  std::optional<Result> in_place;  // nothing: the collective has no such form
};

/// What rank 0 says: nccl-tests' table on standard output, and its JSON keys in a file.
class Report {
 public:
  struct Start {
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> environment;  // KHORO_ variables
    std::vector<Seat> seats;               // by rank
    int threads;                           // of this process
  };
  /// Opens the JSON file, under a new name if it exists; throws Failure when it cannot.
  Report(const Options& options, const Start& start);
  /// Closes the JSON text, also after a failure.
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void add(const Row& row);
  /// A rank's wrong results in words, to be shown below the row that is added next.
  void complain(const std::string& words);
  /// Why there will be no rows.
  void skip(const std::string& words);
  void end(std::uint64_t wrong_rows, double average_bus_bandwidth);

 private:
  void open_json();
  void print_head(const Start& start);
  void print_columns();

  const Options& options_;
  std::string program_;
  std::vector<std::string> complaints_;
  nlohmann::ordered_json json_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
};

}  // namespace khoro::benchmark
