// SPDX-License-Identifier: Apache-2.0
// One-shot allreduce: every rank sends all it has to every other, and folds what it gets in rank
// order, rounding once. P ranks, S bytes.
//   1 round, (P-1) S bytes sent per rank, P-1 messages, 1 slot
// In place it lends nothing: a rank's sum overwrites the input that the others still have to read.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

Lane lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  Span own = input(0);
  if (ranks > 1) {
    Step spread = read(own);
    // What a factor was applied to is rounded when it is sent: all fold that same number.
    if (collective.premul) spread.add(write(own = scratch(0)));
    // Each begins with the rank after it, so that no rank is the first target of all.
    for (int distance = 1; distance < ranks; ++distance)
      spread.add(send((rank + distance) % ranks));
    co_yield std::move(spread);
  }
  co_yield fold_in_rank_order(collective, rank, own) | write(output(0));
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const int peers = collective.ranks - 1;
  return {peers > 0 ? 1 : 0, static_cast<double>(peers)};
}

}  // namespace

extern const Algorithm one_shot_allreduce = {
    .name = "one-shot",
    .collective = CollectiveKind::allreduce,
    .least_slots = 1,
    .lends_in_place = false,
    .rank_order = true,
    .rounds = "1",
    .sent = "(P-1) S",
    .chunks = one_chunk,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
