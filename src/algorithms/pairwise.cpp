// SPDX-License-Identifier: Apache-2.0
// Pairwise alltoall: in each round the ranks form pairs that exchange their blocks, as the players
// of a tournament meet, so that a rank deals with one other at a time. P ranks, S bytes of the
// whole vector.
//   P-1 rounds if P is even, P if it is odd and one rank rests in each, (P-1)/P S bytes sent per
//   rank, 1 slot
// In place it lends nothing: each of a pair overwrites what the other still has to read.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

/// The circle method: a pair's numbers add up to the round's modulo an odd number; whoever is left
/// over meets the last rank, or nobody if that would be itself.
int partner_in(int round, int rank, int ranks) {
  const int circle = ranks % 2 == 0 ? ranks - 1 : ranks;
  const int left_over = round * ((circle + 1) / 2) % circle;
  if (rank == circle) return left_over;
  if (rank == left_over) return circle < ranks ? circle : rank;
  return (round + circle - rank) % circle;
}

int rounds_of(int ranks) { return ranks % 2 == 0 ? ranks - 1 : ranks; }

Lane lane(Collective collective, int rank) {
  co_yield read(input(rank)) | write(output(rank));
  for (int round = 0; round < rounds_of(collective.ranks); ++round) {
    const int partner = partner_in(round, rank, collective.ranks);
    if (partner == rank) continue;
    co_yield read(input(partner)) | send(partner);
    co_yield recv(partner) | write(output(partner));
  }
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const int ranks = collective.ranks;
  return {ranks > 1 ? rounds_of(ranks) : 0, static_cast<double>(ranks - 1) / ranks};
}

}  // namespace

extern const Algorithm pairwise_alltoall = {
    .name = "pairwise",
    .collective = CollectiveKind::alltoall,
    .least_slots = 1,
    .lends_in_place = false,
    .rounds = "P-1 + P mod 2",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
