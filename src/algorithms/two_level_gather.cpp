// SPDX-License-Identifier: Apache-2.0
// Two-level gather and scatter: a rank of each machine, or the root for its own, passes the blocks
// of its machine together. P ranks, S bytes of the whole vector; N machines, the largest of which
// has G ranks. Any rank may be on any machine.
//   gather    2 rounds, 1 if each machine but the root's has one rank; m/P S bytes sent per rank,
//             with m the ranks of the largest machine but the root's,               1 slot
//   scatter   the same rounds, (P-1)/P S (the root),                                1 slot
// The root deals with N-1 messages from other machines and those of its own. Blocks of a machine
// whose ranks do not follow one another go through scratch at the root too.

#include <algorithm>
#include <utility>

#include "algorithms/algorithm.h"
#include "algorithms/build.h"
#include "algorithms/groups.h"
#include "algorithms/parts.h"

namespace khoro {

extern const Algorithm linear_gather, linear_scatter;

namespace {

/// One rank in a gather or scatter.
struct Porter {
  const Collective& collective;
  const Groups& groups;
  int rank;
  Groups::Seat seat = groups.seat(rank);
  Leaders leaders{groups, groups.seat(collective.root)};

  bool is_root() const { return rank == collective.root; }
  bool leads() const { return leaders.include(seat); }

  /// Where the blocks of this rank's group lie: at the root in `buffer`, at another leader in
  /// scratch.
  std::vector<Span> own_blocks(Buffer buffer) const {
    std::vector<Span> blocks;
    int next = 0;
    for (int from : groups.members(seat.group)) {
      blocks.push_back(is_root() ? Span{buffer, from, from + 1} : scratch(next));
      ++next;
    }
    return blocks;
  }
  /// Where the blocks of each group lie at the root while they are on their way between machines:
  /// those of its own nowhere, those of ranks that do not follow one another in scratch.
  std::vector<Span> blocks_at_root(Buffer buffer) const {
    std::vector<Span> blocks;
    int next = 0;
    for (int group = 0; group < groups.count(); ++group) {
      const int size = groups.size(group);
      const int first = groups.members(group).front();
      if (group == leaders.root.group) {
        blocks.emplace_back();
      } else if (follow_one_another(group)) {
        blocks.push_back({buffer, first, first + size});
      } else {
        blocks.push_back(scratch(next, next + size));
        next += size;
      }
    }
    return blocks;
  }
  /// Between scratch and `buffer` at the root.
  std::vector<Copy> in_scratch(Buffer buffer) const {
    std::vector<Copy> blocks;
    int next = 0;
    for (int group = 0; group < groups.count(); ++group)
      if (group != leaders.root.group && !follow_one_another(group))
        for (int from : groups.members(group))
          blocks.push_back({scratch(next++), {buffer, from, from + 1}});
    return blocks;
  }
  bool follow_one_another(int group) const {
    const std::vector<int>& members = groups.members(group);
    return members.back() - members.front() + 1 == groups.size(group);
  }

  Lane within(const Algorithm& algorithm, std::vector<Span> from, std::vector<Span> to) const {
    const Collective whole{algorithm.collective, groups.size(seat.group),
                           leaders.member_of(seat.group)};
    return lane_of({algorithm, whole, groups.members(seat.group), seat.member, std::move(from),
                    std::move(to)});
  }
  Lane between(const Algorithm& algorithm, std::vector<Span> from, std::vector<Span> to) const {
    const Collective whole{algorithm.collective, groups.count(), leaders.root.group};
    return lane_of({algorithm, whole, leaders.ranks(), seat.group, std::move(from), std::move(to)});
  }
  /// What a leader other than the root passes; nothing at the root.
  Span passed() const { return is_root() ? Span{} : scratch(0, groups.size(seat.group)); }
};

Program gather(const Collective& collective, const Topology& topology, const Shape&, int rank) {
  const Groups groups(topology);
  const Porter porter{collective, groups, rank};
  std::vector<Lane> phases;
  const bool alone = groups.size(porter.seat.group) == 1 && !porter.is_root();
  if (!alone)
    phases.push_back(porter.within(linear_gather, {input(0)}, porter.own_blocks(Buffer::output)));
  if (porter.leads())
    phases.push_back(porter.between(linear_gather, {alone ? input(0) : porter.passed()},
                                    porter.blocks_at_root(Buffer::output)));
  if (porter.is_root()) phases.push_back(copies(porter.in_scratch(Buffer::output)));
  return one_lane(in_turn, std::move(phases));
}

Program scatter(const Collective& collective, const Topology& topology, const Shape&, int rank) {
  const Groups groups(topology);
  const Porter porter{collective, groups, rank};
  std::vector<Lane> phases;
  const bool alone = groups.size(porter.seat.group) == 1 && !porter.is_root();
  if (porter.is_root()) {
    std::vector<Copy> blocks = porter.in_scratch(Buffer::input);
    for (Copy& block : blocks) std::swap(block.from, block.to);
    phases.push_back(copies(std::move(blocks)));
  }
  if (porter.leads())
    phases.push_back(porter.between(linear_scatter, porter.blocks_at_root(Buffer::input),
                                    {alone ? output(0) : porter.passed()}));
  if (!alone)
    phases.push_back(porter.within(linear_scatter, porter.own_blocks(Buffer::input), {output(0)}));
  return one_lane(in_turn, std::move(phases));
}

/// Ranks of the greatest group but the root's; 0 if there is no other.
int greatest_other_group(const Collective& collective, const Groups& groups) {
  int most = 0;
  for (int group = 0; group < groups.count(); ++group)
    if (group != groups.seat(collective.root).group) most = std::max(most, groups.size(group));
  return most;
}

int chunks_of_a_group(const Collective& collective, const Topology& topology, const Shape&) {
  return std::max(greatest_other_group(collective, Groups(topology)), 1);
}

int rounds_of_porters(int ranks, int greatest) {
  if (ranks == 1) return 0;
  return greatest > 1 ? 2 : 1;
}

Cost gather_cost(const Collective& collective, const Topology& topology, const Shape&) {
  const int greatest = greatest_other_group(collective, Groups(topology));
  const int least = collective.ranks > 1 ? 1 : 0;
  return {rounds_of_porters(collective.ranks, greatest),
          static_cast<double>(std::max(greatest, least)) / collective.ranks};
}
Cost scatter_cost(const Collective& collective, const Topology& topology, const Shape&) {
  const int greatest = greatest_other_group(collective, Groups(topology));
  return {rounds_of_porters(collective.ranks, greatest),
          static_cast<double>(collective.ranks - 1) / collective.ranks};
}

}  // namespace

extern const Algorithm two_level_gather = {
    .name = "two-level",
    .collective = CollectiveKind::gather,
    .least_slots = 1,
    .equal_blocks = true,
    .by_machine = true,
    .rounds = "2, 1 if no other group > 1",
    .sent = "m/P S, m the greatest other group",
    .chunks = one_chunk_per_rank,
    .program = gather,
    .cost = gather_cost,
    .widest = chunks_of_a_group,
};

extern const Algorithm two_level_scatter = {
    .name = "two-level",
    .collective = CollectiveKind::scatter,
    .least_slots = 1,
    .equal_blocks = true,
    .by_machine = true,
    .rounds = "2, 1 if no other group > 1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = scatter,
    .cost = scatter_cost,
    .widest = chunks_of_a_group,
};

}  // namespace khoro
