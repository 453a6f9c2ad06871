// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective reduce_scatter{
    .program = "reduce_scatter_perf",
    .reduces = true,
    .extent = whole_to_share,
    .expect =
        [](const Extent& extent, const Place& at) {
          const std::size_t mine = extent.recv * at.rank;
          return std::vector<Origin>{{Origin::all_ranks, mine, 0, extent.recv}};
        },
    .bus_factor = but_own_share,
    .run =
        [](const Call& call) {
          return khoroReduceScatter(call.send, call.recv, call.count, call.type, call.op, call.comm,
                                    call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(reduce_scatter, argc, argv, environment);
}
