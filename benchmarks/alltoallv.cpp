// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

/// What rank `from` has for rank `to`, in units: 1 for itself, then 2, 0, 1, 2, ... with the
/// distance either way round. So every rank gives as much as it gets, and may do so in place.
std::size_t units(int from, int to, int ranks) {
  const int distance = std::abs(from - to);
  return (1 + std::min(distance, ranks - distance)) % 3;
}

/// Those of a rank for the ranks before `to`.
std::size_t units_before(int from, int to, int ranks) {
  std::size_t sum = 0;
  for (int rank = 0; rank < to; ++rank) sum += units(from, rank, ranks);
  return sum;
}

std::size_t all_units(int ranks) { return units_before(0, ranks, ranks); }

khoroResult_t exchange_blocks(const Call& call) {
  std::vector<std::size_t> counts, displacements;
  for (int rank = 0; rank < call.at.ranks; ++rank) {
    counts.push_back(call.count * units(call.at.rank, rank, call.at.ranks));
    displacements.push_back(call.count * units_before(call.at.rank, rank, call.at.ranks));
  }
  return khoroAlltoAllV(call.send, counts.data(), displacements.data(), call.recv, counts.data(),
                        displacements.data(), call.type, call.comm, call.stream);
}

constexpr Collective alltoallv{
    .program = "alltoallv_perf",
    .extent =
        [](std::size_t elements, int ranks) {
          const std::size_t unit = elements / all_units(ranks);
          const std::size_t all = unit * all_units(ranks);
          return Extent{.send = all, .recv = all, .count = unit};
        },
    .expect =
        [](const Extent& extent, const Place& at) {
          std::vector<Origin> origins;
          for (int rank = 0; rank < at.ranks; ++rank)
            origins.push_back({rank, extent.count * units_before(rank, at.rank, at.ranks),
                               extent.count * units_before(at.rank, rank, at.ranks),
                               extent.count * units(rank, at.rank, at.ranks)});
          return origins;
        },
    .bus_factor = [](int ranks) { return 1.0 - 1.0 / static_cast<double>(all_units(ranks)); },
    .run = exchange_blocks,
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(alltoallv, argc, argv, environment);
}
