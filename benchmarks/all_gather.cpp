// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective all_gather{
    .program = "all_gather_perf",
    .reduces = false,
    .in_place = true,
    // The size of a row is that of the output.
    .extent =
        [](std::size_t n, int ranks) {
          const std::size_t share = n / ranks;
          return Extent{share, share * ranks, share, share};
        },
    .expect =
        [](const Extent& extent, int, int ranks) {
          std::vector<Origin> origins;
          for (int rank = 0; rank < ranks; ++rank)
            origins.push_back({rank, 0, extent.send * rank, extent.send});
          return origins;
        },
    .bus_factor = [](int ranks) { return 1.0 * (ranks - 1) / ranks; },
    .run =
        [](const Call& call) {
          return khoroAllGather(call.send, call.recv, call.count, call.type, call.comm, nullptr);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(all_gather, argc, argv, environment);
}
