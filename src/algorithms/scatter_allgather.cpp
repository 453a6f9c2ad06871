// SPDX-License-Identifier: Apache-2.0
// Scatter-allgather broadcast (van de Geijn): the root scatters one chunk per rank down a binomial
// tree, then the ranks gather them, those that they lack alone. P ranks, S bytes.
//   ceil(log2 P) + floor(log2(P+1)) - 1 rounds, at most 2(P-1)/P S bytes sent per rank (the root),
//   1 slot
//
// The second half goes by doubling, as in a Bruck allgather: round a ring it would take P-1 rounds,
// in which a chain brings the data for half the bytes.

#include "algorithms/algorithm.h"
#include "algorithms/around.h"
#include "algorithms/binomial_tree.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

// Chunk n is that of number n, counted from the root on: so what a rank has from the scatter, the
// chunks of its subtree, is one span.

Span of_subtree(Buffer buffer, int number, int size) { return {buffer, number, number + size}; }

bool has_from_scatter(const BinomialTree& tree, Span chunks) {
  return tree.number <= chunks.first && chunks.last <= tree.number + tree.size();
}

Lane lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  const BinomialTree tree(collective, rank);
  const int number = tree.number;

  if (!tree.is_root())
    co_yield recv(tree.parent()) | write(of_subtree(Buffer::output, number, tree.size()));
  // The greatest subtree first.
  for (int bit = tree.reach() >> 1; bit > 0; bit >>= 1) {
    if (!tree.has_child(bit)) continue;
    const int size = tree.size_of_child(bit);
    const Span kept = of_subtree(Buffer::output, number + bit, size);
    Step step = tree.is_root() ? read(of_subtree(Buffer::input, number + bit, size)) | write(kept)
                               : Step(read(kept));
    co_yield std::move(step) | send(tree.child(bit));
  }
  if (tree.is_root()) co_yield read(input(0)) | write(output(0));

  for (int have = 1; have < ranks; have *= 2) {
    const int count = given_to_double(have, ranks);
    const BinomialTree before(collective, tree.rank_of(number + ranks - have));
    const int after = (number + have) % ranks;
    for (const Span& chunks : around(number, count, ranks))
      if (!has_from_scatter(before, chunks))
        co_yield read(chunks) | send(tree.rank_of(before.number));
    for (const Span& chunks : around(after, count, ranks))
      if (!has_from_scatter(tree, chunks)) co_yield recv(tree.rank_of(after)) | write(chunks);
  }
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const int ranks = collective.ranks;
  return {ceil_log2(ranks) + floor_log2(ranks + 1) - 1, 2.0 * (ranks - 1) / ranks};
}

/// The subtree of the root's child 2^k is as large as what the root gives in round k of the
/// gathering.
int widest(const Collective& collective, const Topology&, const Shape&) {
  return most_given(collective.ranks);
}

}  // namespace

extern const Algorithm scatter_allgather_broadcast = {
    .name = "scatter-allgather",
    .collective = CollectiveKind::broadcast,
    .least_slots = 1,
    .rounds = "ceil(log2 P) + floor(log2(P+1)) - 1",
    .sent = "2(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = program,
    .cost = cost,
    .widest = widest,
};

}  // namespace khoro
