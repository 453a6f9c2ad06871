// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

using namespace khoro::benchmark;

namespace {

constexpr Collective barrier{
    .program = "barrier_perf",
    .in_place = false,
    .moves_data = false,
    .extent = [](std::size_t, int) { return Extent{}; },
    .expect = [](const Extent&, const Place&) { return std::vector<Origin>{}; },
    .run = [](const Call& call) { return khoroBarrier(call.comm, call.stream); },
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(barrier, argc, argv, environment);
}
