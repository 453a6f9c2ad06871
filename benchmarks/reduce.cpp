// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective reduce{
    .program = "reduce_perf",
    .reduces = true,
    .rooted = true,
    .extent = whole_to_whole,
    .expect = on_root<reduced>,
    .run =
        [](const Call& call) {
          return khoroReduce(call.send, call.recv, call.count, call.type, call.op, call.at.root,
                             call.comm, call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) { return run(reduce, argc, argv, environment); }
