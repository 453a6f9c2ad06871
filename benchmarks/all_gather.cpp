// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective all_gather{
    .program = "all_gather_perf",
    .extent = share_to_whole,
    .expect = gathered,
    .bus_factor = but_own_share,
    .run =
        [](const Call& call) {
          return khoroAllGather(call.send, call.recv, call.count, call.type, call.comm,
                                call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(all_gather, argc, argv, environment);
}
