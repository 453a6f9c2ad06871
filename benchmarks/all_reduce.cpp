// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective all_reduce{
    .program = "all_reduce_perf",
    .reduces = true,
    .in_place = true,
    .extent =
        [](std::size_t n, int) {
          return Extent{n, n, n, 0};
        },
    .expect =
        [](const Extent& extent, int, int) {
          return std::vector<Origin>{{Origin::all_ranks, 0, 0, extent.recv}};
        },
    // Each byte enters and leaves a rank twice, but for its own share.
    .bus_factor = [](int ranks) { return 2.0 * (ranks - 1) / ranks; },
    .run =
        [](const Call& call) {
          return khoroAllReduce(call.send, call.recv, call.count, call.type, call.op, call.comm,
                                nullptr);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(all_reduce, argc, argv, environment);
}
