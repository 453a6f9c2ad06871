// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "parts.h"

using namespace khoro::benchmark;

namespace {

/// Allgather along the edges of a cube: each dimension doubles what a rank has.
khoroResult_t run_cube(const Call& call) {
  char* const output = static_cast<char*>(call.recv);
  char* const own = output + call.at.rank * call.bytes;
  Call round = call;
  khoroResult_t result = khoroSuccess;
  if (own != call.send) result = copy(call, own, call.send, call.bytes);
  for (int edge = 1; edge < call.at.ranks && result == khoroSuccess; edge *= 2) {
    const int here = call.at.rank & ~(edge - 1);  // the first rank of those whose shares are here
    round.send = output + here * call.bytes;
    round.recv = output + (here ^ edge) * call.bytes;
    round.count = call.count * edge;
    result = exchange(round, call.at.rank ^ edge, call.at.rank ^ edge);
  }
  return result;
}

constexpr Collective hypercube{
    .program = "hypercube_perf",
    // A round sends what the round before has received.
    .groups = false,
    .powers_of_two_only = true,
    .extent = share_to_whole,
    .expect = gathered,
    // Unlike the others, nccl-tests leave the own share out of algbw already.
    .algorithm_factor = but_own_share,
    .run = run_cube,
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(hypercube, argc, argv, environment);
}
