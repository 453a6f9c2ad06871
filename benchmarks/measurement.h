// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness.h"
#include "memory.h"
#include "options.h"
#include "report.h"
#include "subject.h"

namespace khoro::benchmark {

/// One rank's run through all sizes, types and reductions; all ranks walk in step.
class Measurement {
 public:
  /// `report` is rank 0's, null elsewhere. Everything is borrowed for the life of the object.
  Measurement(const Collective& collective, const Options& options, khoroComm_t comm,
              Subject& subject, Report* report);
  ~Measurement();
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  /// Returns whether every result on every rank was right. Throws Failure; the calls are aborted
  /// then.
  bool run();

 private:
  bool run_all();
  std::string why_skipped() const;
  Extent extent(std::size_t bytes, std::size_t element_bytes) const;
  /// One type, reduction and root, all sizes.
  struct Scan {
    TypeRow type;
    OpRow op;
    int root;
  };
  void run_cycle();
  void scan(const Scan& scan);
  Row measure_row(std::size_t bytes, const Scan& scan);
  Result measure(const Case& test);
  Call prepare(const Case& test);
  void once(const Call& call, int calls);
  Sample time(const Call& call);
  Latency slowest_of_ranks();
  Sample time_limit(const Case& test);
  void verify(const Case& test, Result& result);
  Wrong verify_data(const Case& test);
  Wrong verify_order(const Call& call);
  std::vector<Sample> gather(const Sample& mine);
  void complain(const std::vector<Sample>& samples, const Case& test);

  const Collective& collective_;
  const Options& options_;
  khoroComm_t comm_;  // by which ranks tell each other what they found
  Subject& subject_;
  Report* report_;
  int rank_ = 0;
  int ranks_ = 0;
  std::optional<Memory> memory_;
  std::vector<void*> registrations_;
  std::vector<double> durations_;  // seconds of each timed iteration, where asked for
  std::uint64_t calls_checked_ = 0;
  std::uint64_t wrong_halves_ = 0;
  double bandwidth_sum_ = 0;
  std::uint64_t bandwidths_ = 0;
};

}  // namespace khoro::benchmark
