// SPDX-License-Identifier: Apache-2.0
// Halving-doubling allreduce (Rabenseifner): the ranks halve what they fold until each has the sum
// of one chunk, then double what they have of the result. Ranks beyond the power of two are folded
// in first. P ranks, S bytes, p = 2^floor(log2 P).
//   2 log2 p rounds, 2 more unless P = p; at most 2(p-1)/p S bytes sent per rank, S more unless
//   P = p; 2 slots
// With one slot no rank could send its chunk of the result before its peer has folded, nor the peer
// before it.
//
// Neighbours exchange first, and most: so the sums are folded in rank order, and the fewest bytes
// go furthest. Partial sums rest in scratch at their chunks' places.

#include <algorithm>

#include "algorithms/algorithm.h"
#include "algorithms/build.h"
#include "algorithms/folding.h"

namespace khoro {
namespace {

/// Chunks [first, last), of whichever buffer.
struct Chunks {
  int first;
  int last;

  Chunks half(int which) const {
    const int middle = (first + last) / 2;
    return which == 0 ? Chunks{first, middle} : Chunks{middle, last};
  }
  Span of(Buffer buffer) const { return {buffer, first, last}; }
};

/// A rank of the core. In each round it keeps one half of what it kept before, and its peer, which
/// kept the same, the other.
struct Halver {
  Collective collective;
  int rank;
  Folding folding{collective.ranks};
  int number = folding.number_of(rank);

  int rounds() const { return folding.rounds(); }
  bool is_last(int round) const { return round + 1 == rounds(); }
  int side(int round) const { return number >> round & 1; }
  int peer(int round) const { return folding.rank_of(number ^ 1 << round); }
  /// Whether the rank after this one is folded in or gets its result in this round.
  bool serves_another(int round) const { return round == 0 && folding.stands_for_two(rank); }

  Chunks before(int round) const {
    Chunks chunks{0, folding.core()};
    for (int i = 0; i < round; ++i) chunks = chunks.half(side(i));
    return chunks;
  }
  Chunks kept(int round) const { return before(round).half(side(round)); }
  Chunks given(int round) const { return before(round).half(1 - side(round)); }

  Step give(int round) const {
    Step step(read(given(round).of(holder(round))));
    if (serves_another(round)) step.add(reduce(recv(rank + 1)));
    return step | send(peer(round));
  }
  /// The lower ranks on the left.
  Step fold(int round) const {
    const Stage own = read(kept(round).of(holder(round)));
    const Stage theirs = recv(peer(round));
    Step step(side(round) == 0 ? own : theirs);
    if (side(round) == 1) step.add(reduce(own));
    if (serves_another(round)) step.add(reduce(recv(rank + 1)));
    if (side(round) == 0) step.add(reduce(theirs));
    if (!is_last(round)) return step | write(kept(round).of(Buffer::scratch));
    return publish(completed(std::move(step), collective) | write(kept(round).of(Buffer::output)),
                   round);
  }
  /// Sends what is complete to whoever gets it in this round.
  Step publish(Step step, int round) const {
    step.add(send(peer(round)));
    return pass_on(std::move(step), round);
  }
  Step pass_on(Step step, int round) const {
    if (serves_another(round)) step.add(send(rank + 1));
    return step;
  }

 private:
  static Buffer holder(int round) { return round == 0 ? Buffer::input : Buffer::scratch; }
};

Lane core_lane(Halver halver) {
  const int rounds = halver.rounds();
  if (rounds == 0) co_yield completed(read(input(0)), halver.collective) | write(output(0));
  for (int round = 0; round < rounds; ++round) {
    co_yield halver.give(round);
    co_yield halver.fold(round);
  }
  for (int round = rounds - 1; round >= 0; --round) {
    if (!halver.is_last(round))
      co_yield halver.publish(read(halver.kept(round).of(Buffer::output)), round);
    co_yield halver.pass_on(
        recv(halver.peer(round)) | write(halver.given(round).of(Buffer::output)), round);
  }
}

/// What the rank before this one gives away first goes to it first, and comes back last.
Lane folded_lane(Halver partner) {
  const int rank = partner.rank;
  co_yield read(partner.given(0).of(Buffer::input)) | send(rank);
  co_yield read(partner.kept(0).of(Buffer::input)) | send(rank);
  co_yield recv(rank) | write(partner.kept(0).of(Buffer::output));
  co_yield recv(rank) | write(partner.given(0).of(Buffer::output));
}

int one_chunk_per_rank_of_core(const Collective& collective, const Topology&, const Shape&) {
  return Folding{collective.ranks}.core();
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  if (Folding{collective.ranks}.is_folded(rank))
    return one_lane(folded_lane, Halver{collective, rank - 1});
  return one_lane(core_lane, Halver{collective, rank});
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const Folding folding{collective.ranks};
  const double core = folding.core();
  const bool folds_in = folding.pairs() > 0;
  return {2 * folding.rounds() + (folds_in ? 2 : 0), 2 * (core - 1) / core + (folds_in ? 1 : 0)};
}

int half_of_the_core(const Collective& collective, const Topology&, const Shape&) {
  return std::max(Folding{collective.ranks}.core() / 2, 1);
}

}  // namespace

extern const Algorithm halving_doubling_allreduce = {
    .name = "halving-doubling",
    .collective = CollectiveKind::allreduce,
    .least_slots = 2,
    .rounds = "2 floor(log2 P), +2 unless P = 2^k",
    .sent = "2(p-1)/p S, +S unless P = p",
    .chunks = one_chunk_per_rank_of_core,
    .program = program,
    .cost = cost,
    .widest = half_of_the_core,
};

}  // namespace khoro
