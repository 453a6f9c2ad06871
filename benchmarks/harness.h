// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "values.h"

namespace khoro::benchmark {

/// The sizes of one call, in elements.
struct Extent {
  std::size_t send;   // elements each rank reads
  std::size_t recv;   // elements each rank writes
  std::size_t count;  // the call's argument
  /// In place the input lies in the output at `rank` times this.
  std::size_t send_stride;
};

struct Call {
  const void* send;
  void* recv;
  std::size_t count;
  khoroDataType_t type;
  khoroRedOp_t op;
  khoroComm_t comm;
  int rank;
  int ranks;
};

/// A collective as the harness sees it.
struct Collective {
  std::string_view program;  // "all_reduce_perf"
  bool reduces;              // has a reduction
  bool in_place;             // may be called in place
  /// From the size that a row names, in elements, and the number of ranks.
  Extent (*extent)(std::size_t elements, int ranks);
  /// The origin of each part of the output of `rank`.
  std::vector<Origin> (*expect)(const Extent& extent, int rank, int ranks);
  /// Bus bandwidth over algorithm bandwidth.
  double (*bus_factor)(int ranks);
  khoroResult_t (*run)(const Call& call);
};

/// The whole program: reads the command line, joins, measures, checks, reports. Returns its exit
/// code: 0, 1 for a failure or wrong results, 2 for a mistake in the command line.
int run(const Collective& collective, int argc, char** argv, char** environment);

}  // namespace khoro::benchmark
