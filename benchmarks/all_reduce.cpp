// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective all_reduce{
    .program = "all_reduce_perf",
    .reduces = true,
    .extent = whole_to_whole,
    .expect = reduced,
    // Each byte enters and leaves a rank twice, but for its own share.
    .bus_factor = [](int ranks) { return 2 * but_own_share(ranks); },
    .run =
        [](const Call& call) {
          return khoroAllReduce(call.send, call.recv, call.count, call.type, call.op, call.comm,
                                call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(all_reduce, argc, argv, environment);
}
