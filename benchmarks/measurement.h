// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "buffer.h"
#include "harness.h"
#include "options.h"
#include "report.h"

namespace khoro::benchmark {

/// One rank's run through all sizes, types and reductions; all ranks walk in step.
class Measurement {
 public:
  /// `report` is rank 0's, null elsewhere. Everything is borrowed for the life of the object.
  Measurement(const Collective& collective, const Options& options, khoroComm_t comm,
              Report* report);

  /// Returns whether every result on every rank was right. Throws Failure.
  bool run();

 private:
  Extent extent(std::size_t bytes, std::size_t element_bytes) const;
  void scan(const TypeRow& type, const OpRow& op);
  Row measure_row(std::size_t bytes, const TypeRow& type, const OpRow& op);
  Result measure(const Extent& extent, const Draw& draw, bool in_place);
  Sample time(const Call& call);
  Sample verify(const Call& call, const Extent& extent, const Draw& draw, bool in_place);
  Call prepare(const Extent& extent, const Draw& draw, bool in_place);
  void once(const Call& call, int calls);
  std::vector<Sample> gather(const Sample& mine);
  void complain(const std::vector<Sample>& samples, const Extent& extent, const Draw& draw,
                bool in_place);

  const Collective& collective_;
  const Options& options_;
  khoroComm_t comm_;
  Report* report_;
  int rank_ = 0;
  int ranks_ = 0;
  std::optional<Buffer> send_;
  std::optional<Buffer> recv_;
  std::uint64_t calls_checked_ = 0;
  std::uint64_t wrong_halves_ = 0;
  double bandwidth_sum_ = 0;
  std::uint64_t bandwidths_ = 0;
};

}  // namespace khoro::benchmark
