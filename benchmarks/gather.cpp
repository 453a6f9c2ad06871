// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective gather{
    .program = "gather_perf",
    .rooted = true,
    .extent = share_to_whole,
    .expect = on_root<gathered>,
    .bus_factor = but_own_share,
    .run =
        [](const Call& call) {
          return khoroGather(call.send, call.recv, call.count, call.type, call.at.root, call.comm,
                             call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) { return run(gather, argc, argv, environment); }
