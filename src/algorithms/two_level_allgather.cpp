// SPDX-License-Identifier: Apache-2.0
// Two-level allgather and reducescatter: what goes between machines goes in few and large messages.
// P ranks, S bytes of the whole vector; N machines, the largest of which has G ranks and the
// smallest R. Any rank may be on any machine.
//   allgather       G-1 rounds, 1 more if N > 1, another if two machines at least have more than R
//                   ranks; (P-1)/P S bytes sent per rank where R = G, else less than
//                   (1 + N/P ceil(G/R)) S,                                            2 slots
//   reducescatter   G-1 + N-1 rounds, at most 1 more if R < G; (P-1)/P S, S if R < G, 2 slots
//
// The first R ranks of each machine hold a column of blocks each. Allgather: they get the blocks of
// the others in turn, exchange what they have with those of the same number on all machines, and
// send their columns round their own by a ring. Reducescatter goes the other way: by a ring columns
// are summed up in each machine, by another what each machine wants of a column between those that
// hold it; then the others get their blocks.
//
// The blocks of a column lie together; where that is not the order of the ranks, in scratch.

#include <algorithm>
#include <cstddef>
#include <utility>

#include "algorithms/algorithm.h"
#include "algorithms/build.h"
#include "algorithms/groups.h"
#include "algorithms/parts.h"

namespace khoro {

extern const Algorithm ring_allgather, ring_reducescatter;
extern const Algorithm linear_gather, linear_scatter, linear_alltoall;

namespace {

/// Where the blocks of all ranks have room, one chunk each.
struct Area {
  Buffer buffer = Buffer::scratch;
  int first = 0;
};

/// How the blocks lie while they are on their way: by columns, in a column by groups, in the order
/// of the members. A group has as many columns as the smallest one has ranks; the first rank of
/// each holds it, and has the blocks of those whose numbers differ from its own by multiples of
/// that.
class Columns {
 public:
  explicit Columns(const Groups& groups) : groups_(groups), place_(at(groups.ranks())) {
    int next = 0;
    for (int column = 0; column < count(); ++column) {
      begins_.push_back(next);
      for (int group = 0; group < groups.count(); ++group)
        for (int rank : ranks_of(group, column)) place_[at(rank)] = next++;
    }
    begins_.push_back(next);
    in_rank_order_ = std::is_sorted(place_.begin(), place_.end());
  }

  int count() const { return groups_.least(); }
  std::vector<int> ranks_of(int group, int column) const {
    std::vector<int> ranks;
    for (int member = column; member < groups_.size(group); member += count())
      ranks.push_back(groups_.members(group)[at(member)]);
    return ranks;
  }
  /// Of a group's part of a column.
  int size(int group, int column) const {
    return (groups_.size(group) - column + count() - 1) / count();
  }
  /// 0 for the number of a member that holds none.
  int size(int column) const {
    return column < count() ? begins_[at(column + 1)] - begins_[at(column)] : 0;
  }
  bool in_rank_order() const { return in_rank_order_; }

  Span whole(Area area, int column) const {
    if (column >= count()) return {};
    return span(area, begins_[at(column)], size(column));
  }
  Span of_group(Area area, int group, int column) const {
    return span(area, place_[at(groups_.rank_at({group, column}))], size(group, column));
  }
  Span of_rank(Area area, int rank) const { return span(area, place_[at(rank)], 1); }
  std::vector<Span> of_ranks(Area area, const std::vector<int>& ranks) const {
    std::vector<Span> blocks;
    for (int rank : ranks) blocks.push_back(of_rank(area, rank));
    return blocks;
  }

 private:
  static Span span(Area area, int first, int size) {
    return {area.buffer, area.first + first, area.first + first + size};
  }
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  const Groups& groups_;
  std::vector<int> place_;   // of the block of each rank
  std::vector<int> begins_;  // of the columns, and the end
  bool in_rank_order_ = false;
};

/// One rank and the parts that it takes.
struct Holder {
  const Groups& groups;
  const Columns& columns;
  int rank;
  Groups::Seat seat = groups.seat(rank);

  /// The one that it holds, or that its block is in.
  int column() const { return seat.member % columns.count(); }
  bool holds_column() const { return seat.member < columns.count(); }
  bool is_alone() const { return groups.size(seat.group) == 1; }
  bool is_only_group() const { return groups.count() == 1; }

  std::vector<Span> all_columns(Area area) const {
    std::vector<Span> all;
    for (int member = 0; member < groups.size(seat.group); ++member)
      all.push_back(columns.whole(area, member));
    return all;
  }
  std::vector<Span> all_groups(Area area) const {
    std::vector<Span> all;
    for (int group = 0; group < groups.count(); ++group)
      all.push_back(columns.of_group(area, group, seat.member));
    return all;
  }

  /// A sum is not written over what it is made of, which may be of a shorter type: those of its
  /// machine, and those of all, have areas of their own, with room for the column only.
  Area sums_within() const {
    const int taken = columns.in_rank_order() ? 0 : groups.ranks();
    return {Buffer::scratch, taken - columns.whole({}, column()).first};
  }
  Area sums_of_all() const {
    return {Buffer::scratch, sums_within().first + columns.size(column())};
  }

  /// Among those of its machine whose blocks are in the column.
  Lane of_column(const Algorithm& algorithm, std::vector<Span> from, std::vector<Span> to) const {
    std::vector<int> ranks = columns.ranks_of(seat.group, column());
    const Collective whole{algorithm.collective, static_cast<int>(ranks.size())};
    const int number = seat.member / columns.count();
    return lane_of({algorithm, whole, std::move(ranks), number, std::move(from), std::move(to)});
  }
  Lane within(const Algorithm& algorithm, bool average, std::vector<Span> from,
              std::vector<Span> to) const {
    const Collective whole{algorithm.collective, groups.size(seat.group), 0, average};
    return lane_of({algorithm, whole, groups.members(seat.group), seat.member, std::move(from),
                    std::move(to)});
  }
  /// Among those that hold the column.
  Lane between(const Algorithm& algorithm, bool average, std::vector<Span> from,
               std::vector<Span> to) const {
    const Collective whole{algorithm.collective, groups.count(), 0, average};
    return lane_of(
        {algorithm, whole, groups.all_at(seat.member), seat.group, std::move(from), std::move(to)});
  }
};

Program allgather(const Collective&, const Topology& topology, const Shape&, int rank) {
  const Groups groups(topology);
  const Columns columns(groups);
  const Holder holder{groups, columns, rank};
  const Area blocks{columns.in_rank_order() ? Buffer::output : Buffer::scratch};
  const std::vector<int> ranks = columns.ranks_of(holder.seat.group, holder.column());

  std::vector<Lane> phases;
  phases.push_back(holder.of_column(linear_gather, {input(0)}, columns.of_ranks(blocks, ranks)));
  if (holder.holds_column()) {
    // The same to each.
    const Span own = columns.of_group(blocks, holder.seat.group, holder.seat.member);
    phases.push_back(holder.between(linear_alltoall, false,
                                    std::vector<Span>(std::size_t(groups.count()), own),
                                    holder.all_groups(blocks)));
  }
  phases.push_back(holder.within(ring_allgather, false, {columns.whole(blocks, holder.seat.member)},
                                 holder.all_columns(blocks)));
  if (!columns.in_rank_order()) {
    std::vector<Copy> to_places;
    for (int from = 0; from < groups.ranks(); ++from)
      to_places.push_back({columns.of_rank(blocks, from), output(from)});
    phases.push_back(copies(std::move(to_places)));
  }
  return one_lane(in_turn, std::move(phases));
}

Program reducescatter(const Collective& collective, const Topology& topology, const Shape&,
                      int rank) {
  const Groups groups(topology);
  const Columns columns(groups);
  const Holder holder{groups, columns, rank};
  const Area blocks{columns.in_rank_order() ? Buffer::input : Buffer::scratch};
  const Area sums_within = holder.sums_within();
  const Area sums_of_all = holder.sums_of_all();
  const std::vector<int> ranks = columns.ranks_of(holder.seat.group, holder.column());
  const bool only = holder.is_only_group();

  std::vector<Lane> phases;
  if (!columns.in_rank_order()) {
    std::vector<Copy> to_columns;
    for (int to = 0; to < groups.ranks(); ++to)
      to_columns.push_back({input(to), columns.of_rank(blocks, to)});
    phases.push_back(copies(std::move(to_columns)));
  }
  if (!holder.is_alone())
    phases.push_back(
        holder.within(ring_reducescatter, only && collective.average, holder.all_columns(blocks),
                      {only ? output(0) : columns.whole(sums_within, holder.seat.member)}));
  if (holder.holds_column() && (holder.is_alone() || !only))
    phases.push_back(holder.between(
        ring_reducescatter, collective.average,
        holder.all_groups(holder.is_alone() ? blocks : sums_within),
        {ranks.size() == 1
             ? output(0)
             : columns.of_group(sums_of_all, holder.seat.group, holder.seat.member)}));
  if (ranks.size() > 1)
    phases.push_back(
        holder.of_column(linear_scatter, columns.of_ranks(sums_of_all, ranks), {output(0)}));
  return one_lane(in_turn, std::move(phases));
}

/// The first column is the greatest.
int chunks_of_a_column(const Collective&, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  return groups.most() > 1 ? Columns(groups).size(0) : 1;
}

/// Blocks that a rank sends in an allgather.
int sent_by(int rank, const Groups& groups, const Columns& columns) {
  const Groups::Seat seat = groups.seat(rank);
  const int size = groups.size(seat.group);
  const int before = seat.member < columns.count()
                         ? (groups.count() - 1) * columns.size(seat.group, seat.member)
                         : 1;
  // Round the ring goes all but what the next rank began with.
  const int next = (seat.member + 1) % size;
  return before + (size > 1 ? groups.ranks() - columns.size(next) : 0);
}

Cost allgather_cost(const Collective& collective, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  const Columns columns(groups);
  int larger = 0;  // groups than the smallest
  for (int group = 0; group < groups.count(); ++group)
    larger += groups.size(group) > groups.least();
  int most = 0;
  for (int rank = 0; rank < groups.ranks(); ++rank)
    most = std::max(most, sent_by(rank, groups, columns));
  return {groups.most() - 1 + (groups.count() > 1) + (larger > 1),
          static_cast<double>(most) / collective.ranks};
}

/// Sums go round the ring between machines, and set out from each when its own ring lets them.
Cost reducescatter_cost(const Collective& collective, const Topology& topology, const Shape&) {
  const Groups groups(topology);
  const int count = groups.count();
  int rounds = 0;
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      const int hops = (to - from + count) % count;
      const int out = groups.size(to) > groups.least() ? 1 : 0;
      rounds = std::max(rounds, groups.size(from) - 1 + hops + out);
    }
  const int sent = groups.most() > groups.least() ? collective.ranks : collective.ranks - 1;
  return {rounds, static_cast<double>(sent) / collective.ranks};
}

}  // namespace

extern const Algorithm two_level_allgather = {
    .name = "two-level",
    .collective = CollectiveKind::allgather,
    .least_slots = 2,
    .equal_blocks = true,
    .by_machine = true,
    .rounds = "G-1, +1 if N > 1, +1 if two groups > R",
    .sent = "(P-1)/P S, < (1 + N/P ceil(G/R)) S if R < G",
    .chunks = one_chunk_per_rank,
    .program = allgather,
    .cost = allgather_cost,
    .widest = chunks_of_a_column,
};

extern const Algorithm two_level_reducescatter = {
    .name = "two-level",
    .collective = CollectiveKind::reducescatter,
    .least_slots = 2,
    .equal_blocks = true,
    .by_machine = true,
    .rounds = "G-1 + N-1, +1 if R < G",
    .sent = "(P-1)/P S, S if R < G",
    .chunks = one_chunk_per_rank,
    .program = reducescatter,
    .cost = reducescatter_cost,
    .widest = chunks_of_a_column,
};

}  // namespace khoro
