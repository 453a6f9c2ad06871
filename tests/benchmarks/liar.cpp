// SPDX-License-Identifier: Apache-2.0
// all_reduce_perf over a collective that flips one bit of rank 1's result: the harness must find
// it.
#include "benchmarks/harness.h"

using namespace khoro::benchmark;

namespace {

khoroResult_t lie(const Call& call) {
  const khoroResult_t result =
      khoroAllReduce(call.send, call.recv, call.count, call.type, call.op, call.comm, nullptr);
  if (call.rank == 1 && call.count > 5) static_cast<char*>(call.recv)[5 * sizeof(float)] ^= 1;
  return result;
}

constexpr Collective liar{
    .program = "liar",
    .reduces = true,
    .in_place = true,
    .extent =
        [](std::size_t n, int) {
          return Extent{n, n, n, 0};
        },
    .expect =
        [](const Extent& extent, int, int) {
          return std::vector<Origin>{{Origin::all_ranks, 0, 0, extent.recv}};
        },
    .bus_factor = [](int) { return 1.0; },
    .run = lie,
};

}  // namespace

int main(int argc, char** argv, char** environment) { return run(liar, argc, argv, environment); }
