// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "values.h"

namespace khoro::benchmark {

/// Which rank of how many; the root is -1 where the collective has none.
struct Place {
  int rank;
  int ranks;
  int root;
};

/// The sizes of one call, in elements; the same on all ranks, also on those whose input or output
/// the call ignores.
struct Extent {
  std::size_t send;   // elements each rank reads
  std::size_t recv;   // elements each rank writes
  std::size_t count;  // the call's argument
  /// In place, input and output lie in the larger of the two, at `rank` times these.
  std::size_t send_stride = 0;
  std::size_t recv_stride = 0;
};

struct Call {
  const void* send;
  void* recv;
  std::size_t count;
  std::size_t bytes;  // of `count` elements
  khoroDataType_t type;
  khoroRedOp_t op;
  khoroComm_t comm;
  khoroStream_t stream;  // NULL: the call blocks
  khoroStream_t copies;  // of the GPU that has the buffers; NULL: the host has them
  Place at;
};

/// A collective as the harness sees it.
struct Collective {
  std::string_view program;         // "all_reduce_perf"
  bool reduces = false;             // has a reduction
  bool rooted = false;              // has a root
  bool in_place = true;             // may be called in place
  bool moves_data = true;           // else it has one row, and no rank may leave before all came
  bool groups = true;               // several calls may be one group
  bool powers_of_two_only = false;  // with other numbers of ranks there is nothing to measure
  /// From the size that a row names, in elements, and the number of ranks.
  Extent (*extent)(std::size_t elements, int ranks);
  /// The origin of each part of a rank's output: all of it, or nothing where the rank gets none.
  std::vector<Origin> (*expect)(const Extent& extent, const Place& at);
  /// Algorithm bandwidth over size per second.
  double (*algorithm_factor)(int ranks) = [](int) { return 1.0; };
  /// Bus bandwidth over algorithm bandwidth.
  double (*bus_factor)(int ranks) = [](int) { return 1.0; };
  khoroResult_t (*run)(const Call& call);
};

/// The whole program: reads the command line, joins, measures, checks, reports. Returns its exit
/// code: 0, 1 for a failure or wrong results, 2 for a mistake in the command line.
int run(const Collective& collective, int argc, char** argv, char** environment);

}  // namespace khoro::benchmark
