// SPDX-License-Identifier: Apache-2.0
// Pipelined chain broadcast: every rank passes each chunk on to the next as soon as it has it.
// P ranks, S bytes, k chunks.
//   P-1 rounds, S bytes sent per rank, k messages, 1 slot; takes the time of P-2+k messages of S/k

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

// Enough that a chain of a machine's ranks fills within one tile; a long buffer is filled by tiles.
constexpr int chunk_count = 8;

Lane lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  const bool last = (rank + 1) % ranks == collective.root;
  for (int chunk = 0; chunk < chunk_count; ++chunk) {
    Step step = rank == collective.root ? read(input(chunk)) : recv((rank + ranks - 1) % ranks);
    step.add(write(output(chunk)));
    if (!last) step.add(send((rank + 1) % ranks));
    co_yield std::move(step);
  }
}

int chunks(const Collective&, const Shape&) { return chunk_count; }

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Shape&) {
  return {collective.ranks - 1, collective.ranks > 1 ? 1.0 : 0.0};
}

}  // namespace

extern const Algorithm chain_broadcast = {
    .name = "chain",
    .collective = CollectiveKind::broadcast,
    .least_slots = 1,
    .rounds = "P-1",
    .sent = "S",
    .chunks = chunks,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
