// SPDX-License-Identifier: Apache-2.0
// Recursive doubling allreduce: in round k each rank exchanges the sum of 2^k ranks for that of the
// next 2^k and folds the two, lower ranks on the left, so that all have the same tree. Ranks beyond
// the power of two p are folded in first. P ranks, S bytes, p = 2^floor(log2 P).
//   log2 p rounds, 1 more if P > p and another if P > 3p/2, at most ceil(log2 P) S bytes sent per
//   rank, 1 slot
// The longest chain of messages begins at a rank that is folded in and ends at the other end of the
// core; it goes on to another such rank only if more than half of the core have one.
//
// Partial sums rest in two chunks of scratch in turn: one that has been sent may still be read by
// the peer, which waits to write its own next sum, but not for this rank to write its next but one.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"
#include "algorithms/folding.h"

namespace khoro {
namespace {

Lane lane(Collective collective, int rank) {
  const Folding folding{collective.ranks};
  if (folding.is_folded(rank)) {
    co_yield read(input(0)) | send(rank - 1);
    co_yield recv(rank - 1) | write(output(0));
    co_return;
  }
  const int number = folding.number_of(rank);
  const bool stands_for_two = folding.stands_for_two(rank);

  Step sum(read(input(0)));
  if (stands_for_two) sum.add(reduce(recv(rank + 1)));
  for (int round = 0; round < folding.rounds(); ++round) {
    const int peer = folding.rank_of(number ^ 1 << round);
    // In place two ranks would each wait to overwrite the input that the other still reads: what
    // the last round sends is no input. And what a factor was applied to is rounded when it is
    // sent: both fold that same number.
    const bool last = round + 1 == folding.rounds();
    const bool rests = round > 0 || stands_for_two || last || collective.premul;
    const Span own = rests ? scratch(round % 2) : input(0);
    if (rests) sum.add(write(own));
    co_yield std::move(sum) | send(peer);
    const bool lower = (number >> round) % 2 == 0;
    sum = lower ? read(own) | reduce(recv(peer)) : recv(peer) | reduce(own);
  }
  sum = completed(std::move(sum), collective) | write(output(0));
  if (stands_for_two) sum.add(send(rank + 1));
  co_yield std::move(sum);
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const Folding folding{collective.ranks};
  const int before = folding.pairs() > 0 ? 1 : 0;
  const int after = folding.pairs() > folding.core() / 2 ? 1 : 0;
  return {before + folding.rounds() + after, static_cast<double>(ceil_log2(collective.ranks))};
}

}  // namespace

extern const Algorithm recursive_doubling_allreduce = {
    .name = "recursive-doubling",
    .collective = CollectiveKind::allreduce,
    .least_slots = 1,
    .rounds = "log2 p, +1 if P > p, +1 if P > 3p/2",
    .sent = "ceil(log2 P) S",
    .chunks = one_chunk,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
