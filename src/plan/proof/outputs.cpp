// SPDX-License-Identifier: Apache-2.0
// The end of a tile: what is where, and is all back where it began?

#include <fmt/format.h>

#include <algorithm>

#include "plan/proof/machine.h"
#include "plan/proof/stuck.h"

namespace khoro::proof {

void Machine::check_stuck() {
  const auto waits = [](const Position& lane) { return lane.step != nullptr; };
  if (std::none_of(world_.positions.begin(), world_.positions.end(), waits)) return check_loans();
  if (!verdict_.found) {
    const Stuck stuck = explain_stuck(world_);
    note(Fault::deadlock, world_.positions[static_cast<std::size_t>(stuck.position)],
         stuck.message);
  }
  verdict_.found->outcome.hangs = true;
}

/// A rank ends when what it lent is back.
void Machine::check_loans() {
  for (const RankState& rank : world_.ranks) {
    if (rank.loans.empty()) continue;
    const Channel& channel = *rank.loans.front().channel;
    note(
        Fault::deadlock, std::nullopt, fmt::format("rank {} end", channel.from),
        fmt::format("waits for rank {} to receive what it was lent, which never does", channel.to));
    verdict_.found->outcome.hangs = true;
    return;
  }
}

void Machine::check_left_over() {
  const auto left_over = [&](int position, const std::string& message) {
    const Position& lane = world_.positions[static_cast<std::size_t>(position)];
    note(Fault::left_over, std::nullopt, fmt::format("rank {} lane {} end", lane.rank, lane.lane),
         message);
    verdict_.found->outcome.left_over = true;
  };
  for (const Channel& channel : world_.channels) {
    if (channel.full > 0)
      left_over(channel.sender,
                fmt::format("{} of its messages to {}.{} {} not received", channel.full, channel.to,
                            channel.index, channel.full == 1 ? "is" : "are"));
    if (channel.windows.size() > channel.filled)
      left_over(channel.receiver,
                fmt::format("{} of its windows offered to {}.{} {} not filled",
                            channel.windows.size() - channel.filled, channel.from, channel.index,
                            channel.windows.size() - channel.filled == 1 ? "is" : "are"));
  }
  for (const RankState& rank : world_.ranks)
    for (const TokenState& token : rank.tokens)
      if (token.count != token.token.count)
        left_over(token.signaller != nobody ? token.signaller : token.awaiter,
                  fmt::format("token {} is {} at the end, and {} at the start", token.token.name,
                              token.count, token.token.count));
}

void Machine::check_outputs() {
  for (int rank = 0; rank < world_.plan->collective.ranks; ++rank)
    for (int chunk = 0; chunk < world_.output_chunks; ++chunk) check_output(rank, chunk);
}

void Machine::check_output(int rank, int chunk) {
  const std::optional<Requirement> required =
      world_.plan->collective.requirement(rank, chunk, world_.plan->chunks);
  const RankState& state = world_.ranks[static_cast<std::size_t>(rank)];
  const Value& got = state.output[static_cast<std::size_t>(chunk)];
  const Outcome::Chunk where{rank, chunk};
  if (!required) {
    if (got.defined) suspect(Fault::wrong_value, {where, std::nullopt, got, {}, false});
    return;
  }
  if (!got.defined && lies_there(rank, chunk, *required)) return;
  if (!got.defined || got.sum != required_sum(*required)) {
    suspect(Fault::wrong_value, {where, required, got, {}, premultiplied_});
    return;
  }
  if (required->from != Requirement::all_ranks) return;
  Value& first = firsts_[static_cast<std::size_t>(required->chunk)];
  if (!first.defined) first = got;
  if (first.order != got.order)
    suspect(Fault::unequal_order, {where, required, got, first, premultiplied_});
  else if (world_.plan->collective.rank_order && got.order != rank_order(required->chunk))
    suspect(Fault::wrong_order, {where, required, got, {}, premultiplied_, true});
}

/// In place, an output that is never written holds the input, which may be what is required.
bool Machine::lies_there(int rank, int chunk, const Requirement& required) {
  const std::optional<int> input = input_at(rank, Buffer::output, chunk);
  return input && contribution(rank, *input).sum == required_sum(required);
}

void Machine::suspect(Fault fault, const Suspect& suspect) {
  if (!verdict_.found) {
    note(fault, std::nullopt, fmt::format("rank {}", suspect.where.rank), {});
    suspect_ = suspect;
  }
  Verdict::Found& found = *verdict_.found;
  if (found.rank < 0) {
    found.rank = suspect.where.rank;
    found.chunk = suspect.where.chunk;
  }
  (fault == Fault::wrong_value ? found.outcome.wrong : found.outcome.unequal)
      .push_back(suspect.where);
}

/// The sum that an output must hold.
std::uint64_t Machine::required_sum(const Requirement& required) {
  if (required.from != Requirement::all_ranks)
    return contribution(required.from, required.chunk).sum;
  if (sums_.empty()) sums_.resize(static_cast<std::size_t>(world_.plan->chunks));
  std::optional<std::uint64_t>& sum = sums_[static_cast<std::size_t>(required.chunk)];
  if (sum) return *sum;
  sum = 0;
  for (int rank = 0; rank < world_.plan->collective.ranks; ++rank) {
    Value value = contribution(rank, required.chunk);
    if (premultiplied_) premultiply(value, rank);
    sum = modulo(*sum + value.sum);
  }
  if (world_.plan->collective.average) sum = times(*sum, scale_factor);
  return *sum;
}

/// The order of the contributions folded from the left, rank 0 first, as the output holds it.
std::uint64_t Machine::rank_order(std::int32_t chunk) const {
  const Collective& collective = world_.plan->collective;
  Value value;
  for (int rank = 0; rank < collective.ranks; ++rank) {
    Value part = contribution(rank, chunk);
    if (premultiplied_) premultiply(part, rank);
    if (rank == 0)
      value = part;
    else
      fold(value, part);
  }
  if (collective.average) scale(value);
  round_to_dtype(value);
  return value.order;
}

/// A rank's end must come after every rank's start.
void Machine::check_barrier() {
  if (world_.plan->collective.kind != CollectiveKind::barrier) return;
  for (const RankState& rank : world_.ranks) {
    Clock known;
    for (int i = 0; i < rank.lanes; ++i)
      known.join(world_.positions[static_cast<std::size_t>(rank.first_lane + i)].clock);
    for (const RankState& other : world_.ranks) {
      bool met = &other == &rank;
      for (int i = 0; i < other.lanes && !met; ++i)
        met = known.knows(
            {world_.positions[static_cast<std::size_t>(other.first_lane + i)].place, 1});
      if (met) continue;
      const auto number = &rank - world_.ranks.data();
      note(Fault::no_barrier, std::nullopt, fmt::format("rank {} end", number),
           fmt::format("may come before rank {} has started", &other - world_.ranks.data()));
      verdict_.found->outcome.early = true;
      return;
    }
  }
}

}  // namespace khoro::proof
