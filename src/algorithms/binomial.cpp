// SPDX-License-Identifier: Apache-2.0
// Binomial tree: counted from the root on, a rank hangs below itself without its lowest bit, so the
// number of ranks that take part doubles with every round. P ranks, S bytes of the whole vector.
//   broadcast   floor(log2 P) rounds, at most ceil(log2 P) S bytes sent per rank (the root), 1 slot
//   reduce      floor(log2 P) rounds, S,                                                    1 slot
//   gather      floor(log2 P) rounds, m/P S with m ranks in the greatest branch,            1 slot
//   scatter     floor(log2 P) rounds, (P-1)/P S (the root),                                 1 slot
// Gather and scatter pass all blocks of a subtree in one message; in two where those of one of the
// root's children go round the end of the whole vector.

#include <algorithm>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/around.h"
#include "algorithms/binomial_tree.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

using Tree = BinomialTree;

Lane broadcast_lane(Tree tree) {
  Step step = tree.is_root() ? read(input(0)) : recv(tree.parent());
  step.add(write(output(0)));
  // The greatest subtree first.
  for (int bit = tree.reach() >> 1; bit > 0; bit >>= 1)
    if (tree.has_child(bit)) step.add(send(tree.child(bit)));
  co_yield std::move(step);
}

Lane reduce_lane(Collective collective, Tree tree) {
  Step step = read(input(0));
  for (int bit = 1; bit < tree.reach() && tree.has_child(bit); bit <<= 1)
    step.add(reduce(recv(tree.child(bit))));
  if (tree.is_root())
    co_yield completed(std::move(step), collective) | write(output(0));
  else
    co_yield std::move(step) | send(tree.parent());
}

/// The blocks of the root's child at `bit`, as they lie in the whole vector.
std::vector<Span> blocks_of_child(const Tree& tree, int bit) {
  return around(tree.child(bit), tree.size_of_child(bit), tree.ranks);
}

/// How many blocks of the rank's subtree go in each message to or from its parent.
std::vector<int> sizes_up(const Tree& tree) {
  if (tree.number != tree.reach()) return {tree.size()};  // the parent is not the root
  std::vector<int> sizes;
  for (const Span& blocks : around(tree.rank_of(tree.number), tree.size(), tree.ranks))
    sizes.push_back(blocks.last - blocks.first);
  return sizes;
}

Lane gather_at_root(Tree tree) {
  co_yield read(input(0)) | write(output(tree.root));
  for (int bit = 1; tree.has_child(bit); bit <<= 1)
    for (const Span& blocks : blocks_of_child(tree, bit))
      co_yield recv(tree.child(bit)) | write(blocks);
}

Lane gather_lane(Tree tree) {
  if (tree.size() == 1) {
    co_yield read(input(0)) | send(tree.parent());
    co_return;
  }
  co_yield read(input(0)) | write(scratch(0));
  for (int bit = 1; bit < tree.reach() && tree.has_child(bit); bit <<= 1)
    co_yield recv(tree.child(bit)) | write(scratch(bit, bit + tree.size_of_child(bit)));
  int first = 0;
  for (int size : sizes_up(tree)) {
    co_yield read(scratch(first, first + size)) | send(tree.parent());
    first += size;
  }
}

Lane scatter_at_root(Tree tree) {
  // The greatest subtree first.
  for (int bit = tree.reach() >> 1; bit > 0; bit >>= 1)
    if (tree.has_child(bit))
      for (const Span& blocks : blocks_of_child(tree, bit))
        co_yield read(input(blocks.first, blocks.last)) | send(tree.child(bit));
  co_yield read(input(tree.root)) | write(output(0));
}

Lane scatter_lane(Tree tree) {
  if (tree.size() == 1) {
    co_yield recv(tree.parent()) | write(output(0));
    co_return;
  }
  int first = 0;
  for (int size : sizes_up(tree)) {
    co_yield recv(tree.parent()) | write(scratch(first, first + size));
    first += size;
  }
  for (int bit = tree.reach() >> 1; bit > 0; bit >>= 1)
    if (tree.has_child(bit))
      co_yield read(scratch(bit, bit + tree.size_of_child(bit))) | send(tree.child(bit));
  co_yield read(scratch(0)) | write(output(0));
}

/// Ranks of the greatest subtree but the root's.
int greatest_subtree(int ranks) {
  if (ranks <= 2) return ranks - 1;
  const int highest = 1 << floor_log2(ranks - 1);
  return std::max(highest / 2, ranks - highest);
}

int widest(const Collective& collective, const Topology&, const Shape&) {
  int most = 1;
  for (int rank = 0; rank < collective.ranks; ++rank) {
    const Tree tree(collective, rank);
    if (tree.is_root()) continue;
    for (int size : sizes_up(tree)) most = std::max(most, size);
  }
  return most;
}

Program broadcast(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(broadcast_lane, Tree(collective, rank));
}
Program reduce_to_root(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(reduce_lane, collective, Tree(collective, rank));
}
Program gather(const Collective& collective, const Topology&, const Shape&, int rank) {
  const Tree tree(collective, rank);
  return one_lane(tree.is_root() ? gather_at_root : gather_lane, tree);
}
Program scatter(const Collective& collective, const Topology&, const Shape&, int rank) {
  const Tree tree(collective, rank);
  return one_lane(tree.is_root() ? scatter_at_root : scatter_lane, tree);
}

int rounds(const Collective& collective) { return floor_log2(collective.ranks); }

Cost broadcast_cost(const Collective& collective, const Topology&, const Shape&) {
  return {rounds(collective), static_cast<double>(ceil_log2(collective.ranks))};
}
Cost reduce_cost(const Collective& collective, const Topology&, const Shape&) {
  return {rounds(collective), collective.ranks > 1 ? 1.0 : 0.0};
}
Cost gather_cost(const Collective& collective, const Topology&, const Shape&) {
  const int ranks = collective.ranks;
  return {rounds(collective), static_cast<double>(greatest_subtree(ranks)) / ranks};
}
Cost scatter_cost(const Collective& collective, const Topology&, const Shape&) {
  return {rounds(collective), static_cast<double>(collective.ranks - 1) / collective.ranks};
}

}  // namespace

extern const Algorithm binomial_broadcast = {
    .name = "binomial",
    .collective = CollectiveKind::broadcast,
    .least_slots = 1,
    .rounds = "floor(log2 P)",
    .sent = "ceil(log2 P) S",
    .chunks = one_chunk,
    .program = broadcast,
    .cost = broadcast_cost,
};

extern const Algorithm binomial_reduce = {
    .name = "binomial",
    .collective = CollectiveKind::reduce,
    .least_slots = 1,
    .rounds = "floor(log2 P)",
    .sent = "S",
    .chunks = one_chunk,
    .program = reduce_to_root,
    .cost = reduce_cost,
};

extern const Algorithm binomial_gather = {
    .name = "binomial",
    .collective = CollectiveKind::gather,
    .least_slots = 1,
    .equal_blocks = true,
    .rounds = "floor(log2 P)",
    .sent = "m/P S, m the greatest subtree",
    .chunks = one_chunk_per_rank,
    .program = gather,
    .cost = gather_cost,
    .widest = widest,
};

extern const Algorithm binomial_scatter = {
    .name = "binomial",
    .collective = CollectiveKind::scatter,
    .least_slots = 1,
    .equal_blocks = true,
    .rounds = "floor(log2 P)",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = scatter,
    .cost = scatter_cost,
    .widest = widest,
};

}  // namespace khoro
