// SPDX-License-Identifier: Apache-2.0
// Two-shot allreduce: every rank folds one chunk of all ranks in rank order, rounding once, and
// sends the result to all. P ranks, S bytes.
//   2 rounds, 2(P-1)/P S bytes sent per rank, 2(P-1) messages, 2 slots
// With one slot no rank could send its result before its peer has folded, nor the peer before it.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

Lane lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  for (int distance = 1; distance < ranks; ++distance) {
    const int peer = (rank + distance) % ranks;
    co_yield read(input(peer)) | send(peer);
  }
  Step fold = fold_in_rank_order(collective, rank, input(rank)) | write(output(rank));
  for (int distance = 1; distance < ranks; ++distance) fold.add(send((rank + distance) % ranks));
  co_yield std::move(fold);
  // The peers sent in the order of their distance, so the one just before sent here first.
  for (int distance = 1; distance < ranks; ++distance) {
    const int peer = (rank + ranks - distance) % ranks;
    co_yield recv(peer) | write(output(peer));
  }
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const int peers = collective.ranks - 1;
  return {peers > 0 ? 2 : 0, 2.0 * peers / collective.ranks};
}

}  // namespace

extern const Algorithm two_shot_allreduce = {
    .name = "two-shot",
    .collective = CollectiveKind::allreduce,
    .least_slots = 2,
    .rank_order = true,
    .rounds = "2",
    .sent = "2(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
