// SPDX-License-Identifier: Apache-2.0
// Double binary tree allreduce: two trees over the same ranks, each for one half of the data, such
// that a rank with children in one is a leaf of the other. Lane 0 goes up both trees, lane 1 down;
// the root of each tree joins them by a token. P ranks, S bytes, h = floor(log2 P).
//   2h rounds, at most 2 S bytes sent per rank (a half up and two down in one tree, a half up as a
//   leaf of the other; P/2 S below 4 ranks, where none has a parent and two children), 1 slot
//
// A rank's step up as a leaf waits for nobody and comes first; its step down as a leaf is waited
// for by nobody and comes last. So neither tree lengthens the other.

#include <algorithm>
#include <array>

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

constexpr int nobody = -1;

/// The place of one rank in one of the trees.
struct Node {
  int parent = nobody;
  std::array<int, 2> children = {nobody, nobody};  // in the tree's order, before and after it
  bool is_leaf() const { return children[0] == nobody && children[1] == nobody; }
};

/// The tree over positions 1..n in which a position's height is the number of its trailing zero
/// bits: odd positions are leaves. A parent or child beyond n is replaced by the next one down that
/// exists.
Node node_at(int position, int n) {
  const int bit = position & -position;
  Node node;
  const int lower = position ^ bit;
  const int upper = lower | (bit << 1);
  if (upper <= n) {
    node.parent = upper;
  } else if (lower > 0) {
    node.parent = lower;
  }
  int step = bit >> 1;
  if (step > 0) node.children[0] = position - step;
  while (step > 0 && position + step > n) step >>= 1;
  if (step > 0) node.children[1] = position + step;
  return node;
}

/// Tree 0 has rank r at position r+1. Tree 1 has the ranks mirrored when their number is even and
/// moved on by one when it is odd, so that even positions, which alone have children, become odd.
struct Trees {
  int ranks;

  int position(int tree, int rank) const {
    if (tree == 0) return rank + 1;
    if (ranks % 2 == 0) return ranks - rank;
    return rank == 0 ? ranks : rank;
  }
  int rank_at(int tree, int position) const {
    if (tree == 0) return position - 1;
    if (ranks % 2 == 0) return ranks - position;
    return position == ranks ? 0 : position;
  }
  Node node(int tree, int rank) const {
    Node node = node_at(position(tree, rank), ranks);
    if (node.parent != nobody) node.parent = rank_at(tree, node.parent);
    for (int& child : node.children)
      if (child != nobody) child = rank_at(tree, child);
    return node;
  }
  /// The tree in which `rank` may have children; in the other it is a leaf.
  int inner_tree(int rank) const { return node(0, rank).is_leaf() ? 1 : 0; }
};

constexpr int joined = 0;  // the token

Step step_up(const Collective& collective, int tree, const Node& node) {
  Step step = node.children[0] == nobody ? Step(read(input(tree)))
                                         : recv(node.children[0]) | reduce(input(tree));
  if (node.children[1] != nobody) step.add(reduce(recv(node.children[1])));
  if (node.parent != nobody) return step | send(node.parent);
  return completed(std::move(step), collective) | write(output(tree)) | signal(joined);
}

Step step_down(int tree, const Node& node) {
  Step step = node.parent == nobody ? await(joined) | read(output(tree))
                                    : recv(node.parent) | write(output(tree));
  for (int child : node.children)
    if (child != nobody) step.add(send(child));
  return step;
}

Lane up(Collective collective, int rank) {
  const Trees trees{collective.ranks};
  const int inner = trees.inner_tree(rank);
  co_yield step_up(collective, 1 - inner, trees.node(1 - inner, rank));
  co_yield step_up(collective, inner, trees.node(inner, rank));
}

Lane down(int ranks, int rank) {
  const Trees trees{ranks};
  const int inner = trees.inner_tree(rank);
  co_yield step_down(inner, trees.node(inner, rank));
  co_yield step_down(1 - inner, trees.node(1 - inner, rank));
}

Lane alone(Collective collective) {
  co_yield completed(read(input(0, 2)), collective) | write(output(0, 2));
}

int a_half_per_tree(const Collective&, const Topology&, const Shape&) { return 2; }

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  if (collective.ranks == 1) return one_lane(alone, collective);
  Program program;
  const Trees trees{collective.ranks};
  if (trees.node(0, rank).parent == nobody || trees.node(1, rank).parent == nobody)
    program.tokens.push_back({"joined", 0});
  program.lanes.push_back(up(collective, rank));
  program.lanes.push_back(down(collective.ranks, rank));
  return program;
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  const int ranks = collective.ranks;
  return {2 * floor_log2(ranks), ranks > 1 ? std::min(ranks, 4) / 2.0 : 0.0};
}

}  // namespace

extern const Algorithm double_tree_allreduce = {
    .name = "double-tree",
    .collective = CollectiveKind::allreduce,
    .least_slots = 1,
    .rounds = "2 floor(log2 P)",
    .sent = "min(P,4)/2 S",
    .chunks = a_half_per_tree,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
