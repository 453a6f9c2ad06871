// SPDX-License-Identifier: Apache-2.0
// Binomial broadcast: whoever has the data sends it on, so that the number of ranks that have it
// doubles. P ranks, S bytes.
//   floor(log2 P) rounds, at most ceil(log2 P) S bytes sent per rank (the root), 1 slot

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

/// Ranks are counted from the root on: `number` hangs below itself without its lowest bit.
Lane lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  const int number = (rank + ranks - collective.root) % ranks;
  const auto rank_of = [=](int other) { return (other + collective.root) % ranks; };
  const int lowest = number == 0 ? 1 << ceil_log2(ranks) : number & -number;

  Step step = number == 0 ? read(input(0)) : recv(rank_of(number - lowest));
  step.add(write(output(0)));
  // The greatest subtree first.
  for (int bit = lowest >> 1; bit > 0; bit >>= 1)
    if (number + bit < ranks) step.add(send(rank_of(number + bit)));
  co_yield std::move(step);
}

int one_chunk(const Collective&, const Shape&) { return 1; }

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Shape&) {
  return {floor_log2(collective.ranks), static_cast<double>(ceil_log2(collective.ranks))};
}

}  // namespace

extern const Algorithm binomial_broadcast = {
    .name = "binomial",
    .collective = CollectiveKind::broadcast,
    .least_slots = 1,
    .rounds = "floor(log2 P)",
    .sent = "ceil(log2 P) S",
    .chunks = one_chunk,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
