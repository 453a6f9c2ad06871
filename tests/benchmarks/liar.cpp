// SPDX-License-Identifier: Apache-2.0
// all_reduce_perf over a collective that flips one bit of rank 1's result: the harness must find
// it.
#include "benchmarks/harness.h"
#include "benchmarks/parts.h"

using namespace khoro::benchmark;

namespace {

khoroResult_t lie(const Call& call) {
  const khoroResult_t result =
      khoroAllReduce(call.send, call.recv, call.count, call.type, call.op, call.comm, call.stream);
  if (call.at.rank == 1 && call.count > 5) static_cast<char*>(call.recv)[5 * sizeof(float)] ^= 1;
  return result;
}

constexpr Collective liar{
    .program = "liar",
    .reduces = true,
    .extent = whole_to_whole,
    .expect = reduced,
    .run = lie,
};

}  // namespace

int main(int argc, char** argv, char** environment) { return run(liar, argc, argv, environment); }
