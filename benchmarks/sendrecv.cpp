// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

int left(const Place& at) { return (at.rank + at.ranks - 1) % at.ranks; }
int right(const Place& at) { return (at.rank + 1) % at.ranks; }

constexpr Collective sendrecv{
    .program = "sendrecv_perf",
    // Sending what is being received is a race.
    .in_place = false,
    .extent = whole_to_whole,
    .expect =
        [](const Extent& extent, const Place& at) {
          return std::vector<Origin>{{left(at), 0, 0, extent.recv}};
        },
    .run = [](const Call& call) { return exchange(call, right(call.at), left(call.at)); },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(sendrecv, argc, argv, environment);
}
