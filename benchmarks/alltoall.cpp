// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective alltoall{
    .program = "alltoall_perf",
    .extent = shares_to_shares,
    .expect =
        [](const Extent& extent, const Place& at) {
          std::vector<Origin> origins;
          for (int rank = 0; rank < at.ranks; ++rank)
            origins.push_back({rank, extent.count * at.rank, extent.count * rank, extent.count});
          return origins;
        },
    .bus_factor = but_own_share,
    .run =
        [](const Call& call) {
          return khoroAlltoAll(call.send, call.recv, call.count, call.type, call.comm, call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(alltoall, argc, argv, environment);
}
