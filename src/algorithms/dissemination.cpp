// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier: in round k each rank tells the one 2^k places on all that it has heard of.
// P ranks.
//   ceil(log2 P) rounds, no bytes, one message per round, 1 slot

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

Lane lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  for (int distance = 1; distance < ranks; distance <<= 1) {
    co_yield read(input(0, 0)) | send((rank + distance) % ranks);
    co_yield recv((rank + ranks - distance) % ranks);
  }
}

int no_chunks(const Collective&, const Topology&, const Shape&) { return 0; }

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  return {ceil_log2(collective.ranks), 0};
}

}  // namespace

extern const Algorithm dissemination_barrier = {
    .name = "dissemination",
    .collective = CollectiveKind::barrier,
    .least_slots = 1,
    .rounds = "ceil(log2 P)",
    .sent = "0",
    .chunks = no_chunks,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
