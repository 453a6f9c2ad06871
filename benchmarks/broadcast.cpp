// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective broadcast{
    .program = "broadcast_perf",
    .rooted = true,
    .extent = whole_to_whole,
    .expect =
        [](const Extent& extent, const Place& at) {
          return std::vector<Origin>{{at.root, 0, 0, extent.recv}};
        },
    .run =
        [](const Call& call) {
          return khoroBroadcast(call.send, call.recv, call.count, call.type, call.at.root,
                                call.comm, call.stream);
        },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(broadcast, argc, argv, environment);
}
