// SPDX-License-Identifier: Apache-2.0
// Channels: the rings and trees that the search finds between the GPUs of the ranks, each at its
// own rate. Where ranks sit on no GPUs, or on one together, nothing is known of their links, and
// the only channel is the ring in rank order. P ranks, S bytes of the whole vector.
//   rings: a lane for each, with a share of every block in proportion to its rate; as the ring
//     allreduce      2(P-1) rounds, 2(P-1)/P S bytes sent per rank, 2 slots
//     reducescatter    P-1  rounds,  (P-1)/P S,                     2 slots
//     allgather        P-1  rounds,  (P-1)/P S,                     2 slots
//   trees: from each rank several, each with an equal share of that rank's block, and a lane for
//   each, or for several that follow each other where there are more than lanes; D is the depth of
//   the deepest. Allreduce folds what goes up a tree and sends the sum down again.
//     allreduce      2D rounds, 2(P-1)/P S bytes sent in the mean of all ranks, 1 slot
//     reducescatter,  D rounds,  (P-1)/P S,                                     1 slot
//     allgather

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/build.h"
#include "algorithms/channel_lanes.h"
#include "algorithms/ring.h"

namespace khoro {
namespace {

/// Lanes between which a block is divided.
int parts_of(const ChannelLanes& lanes) {
  return lanes.trees.empty() ? static_cast<int>(lanes.rings.size()) : lanes.per_rank;
}

int chunks(const Collective& collective, const Topology& topology, const Shape&) {
  return collective.ranks * parts_of(lanes_of(topology));
}

Weights weights(const Collective& collective, const Topology& topology, const Shape&) {
  const ChannelLanes lanes = lanes_of(topology);
  Weights weights;
  if (lanes.weights.size() < 2) return weights;
  for (int rank = 0; rank < collective.ranks / collective.blocks(); ++rank)
    for (const std::uint32_t weight : lanes.weights) weights.add(weight);
  return weights;
}

/// A ring in an order of its own; see Ring.
struct OrderedRing {
  std::vector<int> order;
  int place;  // in the order
  int way;
  int ways;
  int ranks = static_cast<int>(order.size());

  int next() const { return back(ranks - 1); }
  int prev() const { return back(1); }
  int chunk(int distance) const { return back(distance) * ways + way; }

 private:
  int back(int distance) const {
    return order[static_cast<std::size_t>((place + ranks - distance) % ranks)];
  }
};

/// The place of a rank in a tree, and what goes over it.
struct Node {
  int chunk;         // of the whole vector
  int chunk_of_own;  // of the block of the root
  int parent;        // of the root -1
  std::vector<int> children;
  bool is_root() const { return parent < 0; }
};

/// Of the trees of a lane, in their order: the same on all ranks, so none can wait for a later one.
using Nodes = std::vector<Node>;

/// Up the tree: this rank's own, and what its children have folded.
Step gathered(const Node& node) {
  Step step = read(input(node.chunk));
  for (const int child : node.children) step.add(reduce(recv(child)));
  return step;
}

void send_down(Step& step, const Node& node) {
  for (const int child : node.children) step.add(send(child));
}

constexpr int folded = 0;  // the first token: one for each lane of trees

/// Sums go up on a lane of their own, so that the next tile need not wait for this one to come down
/// again.
Lane tree_allreduce_up_lane(Collective collective, Nodes nodes, int token) {
  for (const Node& node : nodes) {
    Step up = gathered(node);
    if (node.is_root())
      co_yield completed(std::move(up), collective) | write(output(node.chunk)) | signal(token);
    else
      co_yield std::move(up) | send(node.parent);
  }
}

Lane tree_allreduce_down_lane(Nodes nodes, int token) {
  for (const Node& node : nodes) {
    Step down = node.is_root() ? await(token) | read(output(node.chunk))
                               : recv(node.parent) | write(output(node.chunk));
    send_down(down, node);
    co_yield std::move(down);
  }
}

Lane tree_reducescatter_lane(Collective collective, Nodes nodes) {
  for (const Node& node : nodes) {
    Step up = gathered(node);
    if (node.is_root())
      co_yield completed(std::move(up), collective) | write(output(node.chunk_of_own));
    else
      co_yield std::move(up) | send(node.parent);
  }
}

Lane tree_allgather_lane(Nodes nodes) {
  for (const Node& node : nodes) {
    Step step = node.is_root() ? Step(read(input(node.chunk_of_own))) : Step(recv(node.parent));
    step.add(write(output(node.chunk)));
    send_down(step, node);
    co_yield std::move(step);
  }
}

/// A lane for each ring.
void add_rings(Program& program, const ChannelLanes& lanes, int rank, const auto& lane_of) {
  const int ways = static_cast<int>(lanes.rings.size());
  for (int way = 0; way < ways; ++way) {
    const std::vector<int>& order = lanes.rings[static_cast<std::size_t>(way)];
    const auto place = std::find(order.begin(), order.end(), rank) - order.begin();
    program.lanes.push_back(lane_of(OrderedRing{order, static_cast<int>(place), way, ways}));
  }
}

/// What a rank does in the trees of each lane.
std::vector<Nodes> nodes_of(const ChannelLanes& lanes, int rank) {
  std::vector<Nodes> all;
  int count = 0;
  for (const RankTree& tree : lanes.trees) {
    if (count % lanes.trees_per_lane == 0) all.emplace_back();
    const int part = count++ % lanes.per_rank;
    all.back().push_back({tree.root * lanes.per_rank + part, part,
                          tree.parent[static_cast<std::size_t>(rank)],
                          tree.children[static_cast<std::size_t>(rank)]});
  }
  return all;
}

Program allreduce(const Collective& collective, const ChannelLanes& lanes, int rank) {
  Program program;
  add_rings(program, lanes, rank,
            [&](OrderedRing ring) { return ring_allreduce_lane(collective, std::move(ring)); });
  const std::vector<Nodes> trees = nodes_of(lanes, rank);
  int token = folded;
  for (const Nodes& nodes : trees) {
    program.tokens.push_back({fmt::format("folded{}", token), 0});
    program.lanes.push_back(tree_allreduce_up_lane(collective, nodes, token++));
  }
  token = folded;
  for (const Nodes& nodes : trees)
    program.lanes.push_back(tree_allreduce_down_lane(nodes, token++));
  return program;
}

Program reducescatter(const Collective& collective, const ChannelLanes& lanes, int rank) {
  Program program;
  add_rings(program, lanes, rank,
            [&](OrderedRing ring) { return ring_reducescatter_lane(collective, std::move(ring)); });
  for (Nodes& nodes : nodes_of(lanes, rank))
    program.lanes.push_back(tree_reducescatter_lane(collective, std::move(nodes)));
  return program;
}

Program allgather(const Collective&, const ChannelLanes& lanes, int rank) {
  Program program;
  add_rings(program, lanes, rank,
            [&](OrderedRing ring) { return ring_allgather_lane(std::move(ring)); });
  for (Nodes& nodes : nodes_of(lanes, rank))
    program.lanes.push_back(tree_allgather_lane(std::move(nodes)));
  return program;
}

/// All ranks find the same channels, so they are searched for once.
template <Program (*of_rank)(const Collective&, const ChannelLanes&, int)>
Programs programs(const Collective& collective, const Topology& topology, const Shape&) {
  return [collective, lanes = lanes_of(topology)](int rank) {
    return of_rank(collective, lanes, rank);
  };
}

int depth_of(const RankTree& tree) {
  int deepest = 0;
  for (std::size_t rank = 0; rank < tree.parent.size(); ++rank) {
    int depth = 0;
    for (int up = tree.parent[rank]; up >= 0; up = tree.parent[static_cast<std::size_t>(up)])
      ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

/// What ranks send up a tree, and down it.
double sent_up(const RankTree& tree, std::size_t rank) { return tree.parent[rank] >= 0 ? 1 : 0; }
double sent_down(const RankTree& tree, std::size_t rank) {
  return static_cast<double>(tree.children[rank].size());
}

/// Of trees that data passes so many times; `sent` says the chunks that a rank sends in all of
/// them.
Cost cost_of_trees(const ChannelLanes& lanes, int passes, const auto& sent) {
  int deepest = 0;
  std::vector<double> chunks(lanes.trees.front().parent.size());
  for (const RankTree& tree : lanes.trees) {
    deepest = std::max(deepest, depth_of(tree));
    for (std::size_t rank = 0; rank < chunks.size(); ++rank) chunks[rank] += sent(tree, rank);
  }
  return {passes * deepest, *std::max_element(chunks.begin(), chunks.end()) /
                                static_cast<double>(lanes.trees.size())};
}

Cost allgather_cost(const Collective& collective, const Topology& topology, const Shape& shape) {
  const ChannelLanes lanes = lanes_of(topology);
  if (lanes.trees.empty()) return once_round(collective, topology, shape);
  return cost_of_trees(lanes, 1, sent_down);
}

Cost reducescatter_cost(const Collective& collective, const Topology& topology,
                        const Shape& shape) {
  const ChannelLanes lanes = lanes_of(topology);
  if (lanes.trees.empty()) return once_round(collective, topology, shape);
  return cost_of_trees(lanes, 1, sent_up);
}

/// The busiest rank may be another in each way, so bytes are those of both ways together.
Cost allreduce_cost(const Collective& collective, const Topology& topology, const Shape& shape) {
  const ChannelLanes lanes = lanes_of(topology);
  if (lanes.trees.empty()) return twice_round(collective, topology, shape);
  return cost_of_trees(lanes, 2, [](const RankTree& tree, std::size_t rank) {
    return sent_up(tree, rank) + sent_down(tree, rank);
  });
}

}  // namespace

extern const Algorithm channels_allreduce = {
    .name = "channels",
    .collective = CollectiveKind::allreduce,
    .version = 2,
    .least_slots = 2,
    .most_channels = own_lane,
    .rounds = "2(P-1)",
    .sent = "2(P-1)/P S",
    .chunks = chunks,
    .programs = programs<allreduce>,
    .cost = allreduce_cost,
    .weights = weights,
};

extern const Algorithm channels_reducescatter = {
    .name = "channels",
    .collective = CollectiveKind::reducescatter,
    .version = 2,
    .least_slots = 2,
    .most_channels = own_lane,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = chunks,
    .programs = programs<reducescatter>,
    .cost = reducescatter_cost,
    .weights = weights,
};

extern const Algorithm channels_allgather = {
    .name = "channels",
    .collective = CollectiveKind::allgather,
    .version = 2,
    .least_slots = 2,
    .most_channels = own_lane,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = chunks,
    .programs = programs<allgather>,
    .cost = allgather_cost,
    .weights = weights,
};

}  // namespace khoro
