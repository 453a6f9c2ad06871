// SPDX-License-Identifier: Apache-2.0
// Ring: every rank talks to its neighbours only. P ranks, S bytes of the whole vector.
//   allreduce      2(P-1) rounds, 2(P-1)/P S bytes sent per rank, 2 slots
//   reducescatter    P-1  rounds,  (P-1)/P S,                     2 slots
//   allgather        P-1  rounds,  (P-1)/P S,                     2 slots
// With one slot every rank would wait for the next to free the slot that it fills itself.

#include "algorithms/ring.h"
#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

Program allreduce(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(ring_allreduce_lane<Ring>, collective, Ring{collective.ranks, rank});
}
Program reducescatter(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(ring_reducescatter_lane<Ring>, collective, Ring{collective.ranks, rank});
}
Program allgather(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(ring_allgather_lane<Ring>, Ring{collective.ranks, rank});
}

}  // namespace

extern const Algorithm ring_allreduce = {
    .name = "ring",
    .collective = CollectiveKind::allreduce,
    .least_slots = 2,
    .rounds = "2(P-1)",
    .sent = "2(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = allreduce,
    .cost = twice_round,
};

extern const Algorithm ring_reducescatter = {
    .name = "ring",
    .collective = CollectiveKind::reducescatter,
    .least_slots = 2,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = reducescatter,
    .cost = once_round,
};

extern const Algorithm ring_allgather = {
    .name = "ring",
    .collective = CollectiveKind::allgather,
    .least_slots = 2,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = allgather,
    .cost = once_round,
};

}  // namespace khoro
