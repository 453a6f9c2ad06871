// SPDX-License-Identifier: Apache-2.0
#include "plan/proof/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace khoro::proof {
namespace {

constexpr int most_ranks = 65536;
constexpr int most_lanes = 253;
constexpr int most_slots = 4096;
constexpr std::int64_t most_cells = std::int64_t{1} << 27;

/// What is wrong with the plan as a whole; empty if nothing is.
std::string fault_of_head(const Plan& plan, const VerifyOptions& options) {
  const Collective& collective = plan.collective;
  if (collective.ranks < 1 || collective.ranks > most_ranks)
    return fmt::format("{} ranks: must be 1..{}", collective.ranks, most_ranks);
  if (collective.has_root() && (collective.root < 0 || collective.root >= collective.ranks))
    return fmt::format("root {}: must be 0..{}", collective.root, collective.ranks - 1);
  if (collective.kind != CollectiveKind::barrier) {
    if (plan.chunks < 1) return fmt::format("{} chunks: must be at least 1", plan.chunks);
    if (plan.chunks % collective.blocks() != 0)
      return fmt::format("{} chunks: must be a multiple of the {} ranks", plan.chunks,
                         collective.ranks);
  }
  if (std::int64_t{plan.chunks} * collective.ranks > most_cells)
    return fmt::format("{} chunks on {} ranks: too many to prove", plan.chunks, collective.ranks);
  if (options.slots < 1 || options.slots > most_slots)
    return fmt::format("{} slots: must be 1..{}", options.slots, most_slots);
  if (options.tiles < 1) return fmt::format("{} tiles: must be at least 1", options.tiles);
  if (!plan.program) return "it has no programs";
  return {};
}

/// In place input chunk i is output chunk i + shift.
int in_place_shift(const Collective& collective, int rank, int chunks) {
  for (int out = 0; out < collective.output_chunks(chunks); ++out)
    if (const std::optional<int> in = collective.in_place_input(rank, out, chunks))
      return out - *in;
  return 0;
}

}  // namespace

Machine::Machine(const Plan& plan, const VerifyOptions& options, Book* book) : book_(book) {
  world_.plan = &plan;
  world_.options = options;
  premultiplied_ = plan.collective.reduces() && plan.collective.premul;
}

Verdict Machine::run() {
  if (const std::string fault = fault_of_head(*world_.plan, world_.options); !fault.empty()) {
    note(Fault::malformed, std::nullopt, "plan " + world_.plan->name(), fault);
    verdict_.found->outcome.refused = true;
    return verdict_;
  }
  world_.input_chunks = world_.plan->collective.input_chunks(world_.plan->chunks);
  world_.output_chunks = world_.plan->collective.output_chunks(world_.plan->chunks);
  block_ = std::max(world_.plan->chunks / world_.plan->collective.blocks(), 1);
  firsts_.resize(static_cast<std::size_t>(std::max(world_.plan->chunks, 0)));
  world_.ranks.resize(static_cast<std::size_t>(world_.plan->collective.ranks));
  for (int tile = 0; tile < world_.options.tiles && !verdict_.found; ++tile) {
    // A tile begins as the one before began: only a race could tell them apart.
    if (tile > 0 && places_.empty()) break;
    if (start_tile(tile)) work();
    if (stopped_)
      verdict_.found->outcome.refused = true;
    else
      end_tile();
  }
  for (const Position& lane : world_.positions) verdict_.steps += lane.begun;
  return verdict_;
}

bool Machine::start_tile(int tile) {
  world_.tile = tile;
  for (int rank = 0; rank < world_.plan->collective.ranks; ++rank)
    if (!start_rank(rank)) return false;
  if (tile == 0) place_clocks();
  for (std::size_t i = world_.positions.size(); i-- > 0;) {
    Position& lane = world_.positions[i];
    lane.tile_begins.push_back(lane.begun);
    lane.number = 0;
    lane.inspected = false;
    lane.step = lane.steps->next();
    wake(static_cast<int>(i));
  }
  return true;
}

bool Machine::start_rank(int rank) {
  RankState& state = world_.ranks[static_cast<std::size_t>(rank)];
  Program program = world_.plan->program(rank);
  if (program.lanes.size() > most_lanes) {
    note(Fault::malformed, std::nullopt, fmt::format("rank {}", rank),
         fmt::format("{} lanes: at most {}", program.lanes.size(), most_lanes));
    stopped_ = true;
    return false;
  }
  if (world_.tile == 0) {
    state.first_lane = static_cast<int>(world_.positions.size());
    state.lanes = static_cast<int>(program.lanes.size());
    state.shift = in_place_shift(world_.plan->collective, rank, world_.plan->chunks);
    for (const Token& token : program.tokens) state.tokens.emplace_back(token);
    for (const TokenState& token : state.tokens) {
      if (token.count >= 0) continue;
      note(Fault::malformed, std::nullopt, fmt::format("rank {}", rank),
           fmt::format("token {} starts with {}", token.token.name, token.count));
      stopped_ = true;
      return false;
    }
    world_.positions.resize(world_.positions.size() + program.lanes.size());
  }
  state.output.assign(static_cast<std::size_t>(world_.output_chunks), Value{});
  state.scratch.assign(state.scratch.size(), Value{});
  state.output_history.assign(state.output_history.size(), History{});
  for (int i = 0; i < state.lanes; ++i) {
    Position& lane = world_.positions[static_cast<std::size_t>(state.first_lane + i)];
    lane.rank = rank;
    lane.lane = i;
    lane.steps.emplace(std::move(program.lanes[static_cast<std::size_t>(i)]));
  }
  return true;
}

/// A lane alone on its rank orders all that the rank does: what peers reach in its memory it does
/// not touch before it has it back. A barrier is judged by what orders ranks.
void Machine::place_clocks() {
  const bool all = world_.plan->collective.kind == CollectiveKind::barrier;
  for (RankState& rank : world_.ranks) {
    if (!all && rank.lanes < 2) continue;
    rank.output_history.resize(rank.output.size());
    for (int i = 0; i < rank.lanes; ++i) {
      Position& lane = world_.positions[static_cast<std::size_t>(rank.first_lane + i)];
      lane.tracked = true;
      lane.place = static_cast<std::uint32_t>(places_.size());
      places_.push_back(rank.first_lane + i);
    }
  }
}

void Machine::wake(int position) {
  Position& lane = world_.positions[static_cast<std::size_t>(position)];
  if (lane.queued) return;
  lane.queued = true;
  work_.push_back(position);
}

void Machine::work() {
  while (!work_.empty() && !stopped_) {
    Position& lane = world_.positions[static_cast<std::size_t>(work_.back())];
    work_.pop_back();
    lane.queued = false;
    run_lane(lane);
  }
}

void Machine::run_lane(Position& lane) {
  while (lane.step != nullptr) {
    if (!examine(lane) || !fire(lane)) return;
    ++lane.number;
    lane.inspected = false;
    lane.step = lane.steps->next();
  }
}

void Machine::end_tile() {
  check_stuck();
  if (!verdict_.found || !verdict_.found->outcome.hangs) {
    check_left_over();
    check_outputs();
    check_barrier();
  }
  if (!verdict_.found || verdict_.found->fault != Fault::race) return;
  // Two lanes of a rank met in this order. If that did no harm, the other one does.
  const Outcome& outcome = verdict_.found->outcome;
  std::vector<StepAt>& witness = verdict_.found->witness;
  if (outcome.wrong.empty() && outcome.unequal.empty())
    std::reverse(witness.begin(), witness.end());
}

}  // namespace khoro::proof
