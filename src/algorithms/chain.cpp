// SPDX-License-Identifier: Apache-2.0
// Pipelined chain: the ranks stand in a row, and each passes a chunk on as soon as it has it.
// P ranks, S bytes, k chunks.
//   broadcast, from the root on     P-1 rounds, S bytes sent per rank, k messages, 1 slot
//   reduce, from the rank after the root round to it: the same
// Both take the time of P-2+k messages of S/k.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

// Enough that a chain of a machine's ranks fills within one tile; a long buffer is filled by tiles.
constexpr int chunk_count = 8;

Lane broadcast_lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  const bool last = (rank + 1) % ranks == collective.root;
  for (int chunk = 0; chunk < chunk_count; ++chunk) {
    Step step = rank == collective.root ? read(input(chunk)) : recv((rank + ranks - 1) % ranks);
    step.add(write(output(chunk)));
    if (!last) step.add(send((rank + 1) % ranks));
    co_yield std::move(step);
  }
}

Lane reduce_lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  const int next = (rank + 1) % ranks;
  const bool first = (rank + ranks - 1) % ranks == collective.root;
  for (int chunk = 0; chunk < chunk_count; ++chunk) {
    Step step =
        first ? Step(read(input(chunk))) : recv((rank + ranks - 1) % ranks) | reduce(input(chunk));
    if (rank == collective.root)
      co_yield completed(std::move(step), collective) | write(output(chunk));
    else
      co_yield std::move(step) | send(next);
  }
}

int chunks(const Collective&, const Topology&, const Shape&) { return chunk_count; }

Program broadcast(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(broadcast_lane, collective, rank);
}
Program reduce_to_root(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(reduce_lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
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
    .program = broadcast,
    .cost = cost,
};

extern const Algorithm chain_reduce = {
    .name = "chain",
    .collective = CollectiveKind::reduce,
    .least_slots = 1,
    .rounds = "P-1",
    .sent = "S",
    .chunks = chunks,
    .program = reduce_to_root,
    .cost = cost,
};

}  // namespace khoro
