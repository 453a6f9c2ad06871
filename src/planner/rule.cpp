// SPDX-License-Identifier: Apache-2.0
#include "planner/rule.h"

#include <iterator>

namespace khoro {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr int any = RuleRow::any_ranks;
/// Up to here the blocks of half of the ranks, of an element each, go into the least slot.
constexpr int blocks_of_a_slot = 512;

constexpr std::string_view in_rank_order = "exact: folds in rank order, and rounds once";

constexpr RuleRow rows[] = {
    {CollectiveKind::allreduce, 1, RuleRow::any_bytes, "one-shot", "one rank copies"},
    {CollectiveKind::allreduce, 2, 256 * kib, "one-shot",
     "half the rounds of two-shot, and its bytes"},
    {CollectiveKind::allreduce, 8, 4 * kib, "one-shot", "one round, and the bytes are few"},
    {CollectiveKind::allreduce, 8, 16 * kib, "one-shot", "a round over sockets costs system calls",
     false, true},
    {CollectiveKind::allreduce, 8, 4 * mib, "two-shot", "two rounds, no byte more than a ring"},
    {CollectiveKind::allreduce, any, 256 * kib, "double-tree", "rounds grow as log P"},
    {CollectiveKind::allreduce, any, RuleRow::any_bytes, "ring",
     "least bytes, two channels a rank"},
    {CollectiveKind::allreduce, any, RuleRow::any_bytes, "two-shot", in_rank_order, true},
    {CollectiveKind::broadcast, any, 64 * kib, "binomial", "rounds grow as log P"},
    {CollectiveKind::broadcast, any, RuleRow::any_bytes, "chain", "no rank sends more than once"},
    {CollectiveKind::allgather, any, RuleRow::any_bytes, "ring", "least bytes"},
    {CollectiveKind::reducescatter, any, RuleRow::any_bytes, "ring", "least bytes"},
    {CollectiveKind::reducescatter, any, RuleRow::any_bytes, "linear", in_rank_order, true},
    {CollectiveKind::barrier, any, RuleRow::any_bytes, "dissemination", "rounds grow as log P"},
    {CollectiveKind::reduce, any, 64 * kib, "binomial", "rounds grow as log P"},
    {CollectiveKind::reduce, any, RuleRow::any_bytes, "chain", "no rank sends more than once"},
    {CollectiveKind::reduce, any, RuleRow::any_bytes, "linear", in_rank_order, true},
    {CollectiveKind::gather, 8, RuleRow::any_bytes, "linear", "one round, and few ranks"},
    {CollectiveKind::gather, blocks_of_a_slot, 256 * kib, "binomial", "rounds grow as log P"},
    {CollectiveKind::gather, any, RuleRow::any_bytes, "linear", "no byte goes twice"},
    {CollectiveKind::scatter, 8, RuleRow::any_bytes, "linear", "one round, and few ranks"},
    {CollectiveKind::scatter, blocks_of_a_slot, 256 * kib, "binomial", "rounds grow as log P"},
    {CollectiveKind::scatter, any, RuleRow::any_bytes, "linear", "no byte goes twice"},
    {CollectiveKind::alltoall, 8, 64 * kib, "linear", "one round, and few ranks"},
    {CollectiveKind::alltoall, blocks_of_a_slot, 64 * kib, "bruck", "rounds grow as log P"},
    {CollectiveKind::alltoall, any, RuleRow::any_bytes, "pairwise", "one peer at a time"},
};

}  // namespace

std::span<const RuleRow> default_rule() noexcept { return rows; }

bool runs_with(const Algorithm& algorithm, int ranks, int slots) noexcept {
  return algorithm.least_slots <= slots || ranks == 1;
}

bool can_do(const Algorithm& algorithm, const Collective& collective) noexcept {
  return algorithm.collective == collective.kind &&
         !(collective.unequal && algorithm.equal_blocks) &&
         !(collective.rank_order && !algorithm.rank_order);
}

Choice choose(const Collective& collective, std::size_t bytes, const Topology&, int slots,
              Medium medium) noexcept {
  Choice choice;
  choice.shape.slots = slots;
  const auto take = [&](const RuleRow& row) {
    choice.algorithm = find_algorithm(row.collective, row.algorithm);
    choice.why = row.why;
    return runs_with(*choice.algorithm, collective.ranks, slots) &&
           can_do(*choice.algorithm, collective);
  };
  const auto is_for = [&](const RuleRow& row) {
    return row.collective == collective.kind && (collective.rank_order || !row.rank_order) &&
           (medium == Medium::sockets || !row.over_sockets);
  };
  for (const RuleRow& row : rows)
    if (is_for(row) && collective.ranks <= row.most_ranks && bytes <= row.most_bytes && take(row))
      return choice;
  for (std::size_t i = std::size(rows); i-- > 0;)
    if (is_for(rows[i]) && take(rows[i])) return choice;
  return choice;
}

}  // namespace khoro
