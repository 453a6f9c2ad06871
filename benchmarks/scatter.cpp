// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective scatter{
    .program = "scatter_perf",
    .rooted = true,
    .extent = whole_to_share,
    .expect =
        [](const Extent& extent, const Place& at) {
          return std::vector<Origin>{{at.root, extent.recv * at.rank, 0, extent.recv}};
        },
    .bus_factor = but_own_share,
    .run =
        [](const Call& call) {
          return khoroScatter(call.send, call.recv, call.count, call.type, call.at.root, call.comm,
                              call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(scatter, argc, argv, environment);
}
