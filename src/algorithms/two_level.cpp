// SPDX-License-Identifier: Apache-2.0
// Two-level: the ranks of each machine work together first or last, and between machines goes what
// they have made of it. P ranks, S bytes of the whole vector; N machines, the largest of which has
// G ranks and the smallest R. Any rank may be on any machine.
//   allreduce   2(G-1) rounds, 2 more if N > 1; 2(R-1)/R S bytes sent per rank within its machine,
//               S/R more if R < G, and 2(N-1)/(NR) S to others,                      2 slots
//   reduce      at most floor(log2 G) + floor(log2 N) rounds, S,                       1 slot
//   broadcast   at most floor(log2 G) + floor(log2 N) rounds, at most
//               (ceil(log2 G) + ceil(log2 N)) S (the root),                            1 slot
// Reduce and broadcast take fewer rounds where no large group is far from the root.
//
// Allreduce: a ring reducescatter in each machine over its first R ranks, so that each has one of R
// parts; a two-shot allreduce of each part between those of all machines that have it; a ring
// allgather. On a larger machine the others pass parts on and have none of their own. The others
// are binomial trees of the machines' first ranks, or the root for its own, and in each machine.
//
// What only one rank of a machine, or one machine, would take part in is left out. So on one
// machine these are a ring and binomial trees, and with one rank a machine two-shot and binomial.

#include <algorithm>
#include <bit>
#include <utility>

#include "algorithms/algorithm.h"
#include "algorithms/binomial_tree.h"
#include "algorithms/build.h"
#include "algorithms/groups.h"
#include "algorithms/parts.h"

namespace khoro {

extern const Algorithm ring_reducescatter, two_shot_allreduce, ring_allgather;
extern const Algorithm binomial_reduce, binomial_broadcast;

namespace {

/// One rank in the allreduce. Chunks are numbered part by part, one for each machine.
struct AllReducer {
  const Collective& collective;
  const Groups& groups;
  Groups::Seat seat;

  int parts() const { return groups.least(); }
  const std::vector<int>& members() const { return groups.members(seat.group); }
  bool is_alone() const { return members().size() == 1; }
  bool has_part() const { return seat.member < parts(); }

  Span part(Buffer buffer, int member) const {
    const auto first_chunk = [&](int part) { return std::min(part, parts()) * groups.count(); };
    return {buffer, first_chunk(member), first_chunk(member + 1)};
  }
  std::vector<Span> all_parts(Buffer buffer) const {
    std::vector<Span> spans;
    for (int member = 0; member < groups.size(seat.group); ++member)
      spans.push_back(part(buffer, member));
    return spans;
  }
  std::vector<Span> chunks_of_part(Buffer buffer) const {
    const Span part = this->part(buffer, seat.member);
    std::vector<Span> spans;
    for (int chunk = part.first; chunk < part.last; ++chunk)
      spans.push_back({buffer, chunk, chunk + 1});
    return spans;
  }

  Lane sum_within() const {
    const bool completes = groups.count() == 1;
    const Collective whole{CollectiveKind::reducescatter, groups.size(seat.group), 0,
                           completes && collective.average};
    const Span sum = part(completes ? Buffer::output : Buffer::scratch, seat.member);
    return lane_of(
        {ring_reducescatter, whole, members(), seat.member, all_parts(Buffer::input), {sum}});
  }
  Lane sum_between() const {
    const Collective whole{CollectiveKind::allreduce, groups.count(), 0, collective.average};
    return lane_of({two_shot_allreduce, whole, groups.all_at(seat.member), seat.group,
                    chunks_of_part(is_alone() ? Buffer::input : Buffer::scratch),
                    chunks_of_part(Buffer::output)});
  }
  Lane spread_within() const {
    const Collective whole{CollectiveKind::allgather, groups.size(seat.group)};
    return lane_of({ring_allgather,
                    whole,
                    members(),
                    seat.member,
                    {part(Buffer::output, seat.member)},
                    all_parts(Buffer::output)});
  }
};

Program allreduce(const Collective& collective, const Topology& topology, const Shape&, int rank) {
  const Groups groups(topology);
  const AllReducer reducer{collective, groups, groups.seat(rank)};
  std::vector<Lane> phases;
  if (!reducer.is_alone()) phases.push_back(reducer.sum_within());
  if (reducer.has_part() && (reducer.is_alone() || groups.count() > 1))
    phases.push_back(reducer.sum_between());
  if (!reducer.is_alone()) phases.push_back(reducer.spread_within());
  return one_lane(in_turn, std::move(phases));
}

int one_chunk_per_part_and_machine(const Collective&, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  return groups.least() * groups.count();
}
int chunks_of_a_part(const Collective&, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  return groups.most() > 1 ? groups.count() : 1;
}

Cost allreduce_cost(const Collective&, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  const double parts = groups.least();
  const double machines = groups.count();
  const double within = 2 * (parts - 1) / parts + (groups.most() > groups.least() ? 1 / parts : 0);
  return {2 * (groups.most() - 1) + (groups.count() > 1 ? 2 : 0),
          within + 2 * (machines - 1) / (machines * parts)};
}

/// One rank in a reduce or broadcast: below a rank that leads its group there are the others, below
/// the root the other leaders.
struct Follower {
  const Collective& collective;
  const Groups& groups;
  Groups::Seat seat;
  Leaders leaders{groups, groups.seat(collective.root)};

  bool leads() const { return leaders.include(seat); }
  bool is_alone() const { return groups.size(seat.group) == 1; }

  Lane within(const Algorithm& algorithm, bool average, Span from, Span to) const {
    const Collective whole{algorithm.collective, groups.size(seat.group),
                           leaders.member_of(seat.group), average};
    return lane_of({algorithm, whole, groups.members(seat.group), seat.member, {from}, {to}});
  }
  Lane between(const Algorithm& algorithm, Span from, Span to) const {
    const Collective whole{algorithm.collective, groups.count(), leaders.root.group,
                           collective.average};
    return lane_of({algorithm, whole, leaders.ranks(), seat.group, {from}, {to}});
  }
};

Program reduce_to_root(const Collective& collective, const Topology& topology, const Shape&,
                       int rank) {
  const Groups groups(topology);
  const Follower follower{collective, groups, groups.seat(rank)};
  const bool only = groups.count() == 1;
  std::vector<Lane> phases;
  if (!follower.is_alone())
    phases.push_back(follower.within(binomial_reduce, only && collective.average, input(0),
                                     only ? output(0) : scratch(0)));
  if (follower.leads() && (follower.is_alone() || !only))
    phases.push_back(
        follower.between(binomial_reduce, follower.is_alone() ? input(0) : scratch(0), output(0)));
  return one_lane(in_turn, std::move(phases));
}

Program broadcast(const Collective& collective, const Topology& topology, const Shape&, int rank) {
  const Groups groups(topology);
  const Follower follower{collective, groups, groups.seat(rank)};
  const bool only = groups.count() == 1;
  std::vector<Lane> phases;
  if (follower.leads() && (follower.is_alone() || !only))
    phases.push_back(follower.between(binomial_broadcast, input(0), output(0)));
  if (!follower.is_alone())
    phases.push_back(
        follower.within(binomial_broadcast, false, only ? input(0) : output(0), output(0)));
  return one_lane(in_turn, std::move(phases));
}

/// The tree of the leaders, from the place of one group's.
BinomialTree tree_of_leaders(const Collective& collective, const Groups& groups, int group) {
  const int root = groups.seat(collective.root).group;
  return BinomialTree({collective.kind, groups.count(), root}, group);
}

/// Each bit of a leader's number is a message on its way to the root, or from it.
int rounds_of_trees(const Collective& collective, const Groups& groups) {
  int most = 0;
  for (int group = 0; group < groups.count(); ++group) {
    const auto number = static_cast<unsigned>(tree_of_leaders(collective, groups, group).number);
    most = std::max(most, std::popcount(number) + floor_log2(groups.size(group)));
  }
  return most;
}

int children_of(const BinomialTree& tree) {
  int count = 0;
  for (int bit = 1; bit < tree.reach(); bit <<= 1) count += tree.has_child(bit);
  return count;
}

Cost reduce_cost(const Collective& collective, const Topology& topology, const Shape&) {
  return {rounds_of_trees(collective, Groups(topology)), collective.ranks > 1 ? 1.0 : 0.0};
}

Cost broadcast_cost(const Collective& collective, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  int most = 0;  // that a leader sends to
  for (int group = 0; group < groups.count(); ++group)
    most = std::max(most, children_of(tree_of_leaders(collective, groups, group)) +
                              ceil_log2(groups.size(group)));
  return {rounds_of_trees(collective, groups), static_cast<double>(most)};
}

}  // namespace

extern const Algorithm two_level_allreduce = {
    .name = "two-level",
    .collective = CollectiveKind::allreduce,
    .least_slots = 2,
    .by_machine = true,
    .rounds = "2(G-1), +2 if N > 1",
    .sent = "2(R-1)/R S + 2(N-1)/(NR) S, +S/R if R < G",
    .chunks = one_chunk_per_part_and_machine,
    .program = allreduce,
    .cost = allreduce_cost,
    .widest = chunks_of_a_part,
};

extern const Algorithm two_level_reduce = {
    .name = "two-level",
    .collective = CollectiveKind::reduce,
    .least_slots = 1,
    .by_machine = true,
    .rounds = "<= floor(log2 G) + floor(log2 N)",
    .sent = "S",
    .chunks = one_chunk,
    .program = reduce_to_root,
    .cost = reduce_cost,
};

extern const Algorithm two_level_broadcast = {
    .name = "two-level",
    .collective = CollectiveKind::broadcast,
    .least_slots = 1,
    .by_machine = true,
    .rounds = "<= floor(log2 G) + floor(log2 N)",
    .sent = "<= (ceil(log2 G) + ceil(log2 N)) S",
    .chunks = one_chunk,
    .program = broadcast,
    .cost = broadcast_cost,
};

}  // namespace khoro
