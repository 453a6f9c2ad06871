// SPDX-License-Identifier: Apache-2.0
// Two-way ring: one half of the data goes up the ranks on lane 0, the other down on lane 1, so that
// links work in both directions. P ranks, S bytes of the whole vector.
//   allreduce      2(P-1) rounds, 2(P-1)/P S bytes sent per rank, half each way, 2 slots
//   reducescatter    P-1  rounds,  (P-1)/P S,                                    2 slots
//   allgather        P-1  rounds,  (P-1)/P S,                                    2 slots
// The lanes share no chunk and need no token; each waits as the ring does.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"
#include "algorithms/ring.h"

namespace khoro {
namespace {

constexpr int ways = 2;

int two_chunks_per_rank(const Collective& collective, const Topology&, const Shape&) {
  return ways * collective.ranks;
}

Program both_ways(const Collective& collective, int rank, const auto& lane_of) {
  Program program;
  for (int way = 0; way < ways; ++way)
    program.lanes.push_back(lane_of(Ring{collective.ranks, rank, way, ways}));
  return program;
}

Program allreduce(const Collective& collective, const Topology&, const Shape&, int rank) {
  return both_ways(collective, rank,
                   [&](Ring ring) { return ring_allreduce_lane(collective, ring); });
}
Program reducescatter(const Collective& collective, const Topology&, const Shape&, int rank) {
  return both_ways(collective, rank,
                   [&](Ring ring) { return ring_reducescatter_lane(collective, ring); });
}
Program allgather(const Collective& collective, const Topology&, const Shape&, int rank) {
  return both_ways(collective, rank, ring_allgather_lane<Ring>);
}

}  // namespace

extern const Algorithm two_way_ring_allreduce = {
    .name = "two-way-ring",
    .collective = CollectiveKind::allreduce,
    .least_slots = 2,
    .rounds = "2(P-1)",
    .sent = "2(P-1)/P S",
    .chunks = two_chunks_per_rank,
    .program = allreduce,
    .cost = twice_round,
};

extern const Algorithm two_way_ring_reducescatter = {
    .name = "two-way-ring",
    .collective = CollectiveKind::reducescatter,
    .least_slots = 2,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = two_chunks_per_rank,
    .program = reducescatter,
    .cost = once_round,
};

extern const Algorithm two_way_ring_allgather = {
    .name = "two-way-ring",
    .collective = CollectiveKind::allgather,
    .least_slots = 2,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = two_chunks_per_rank,
    .program = allgather,
    .cost = once_round,
};

}  // namespace khoro
