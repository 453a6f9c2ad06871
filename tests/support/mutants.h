// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/program.h"
#include "plan/text.h"
#include "support/listing.h"

namespace khoro::test {

/// A plan with one small thing changed. It can be proved, printed and run like any other.
struct Mutant {
  std::string description;  // "swap: rank 1 lane 0 step 2: recv 0 | write output[1]"
  Plan plan;
  int slots = 1;
  /// The first word of the description.
  std::string kind() const { return description.substr(0, description.find(':')); }
};

/// Makes all mutants of a plan: each drops a step or a stage of one, swaps two neighbouring steps
/// or reduces, turns to another peer, chunk, size or count of tokens, or has one slot less than
/// `least_slots`.
class Mutation {
 public:
  Mutation(const Plan& plan, int least_slots)
      : plan_(plan), slots_(least_slots), ranks_(list(plan)) {}

  std::vector<Mutant> all() {
    for (rank_ = 0; rank_ < ranks_.size(); ++rank_) {
      for (std::size_t token = 0; token < here().tokens.size(); ++token) add_token(token);
      for (lane_ = 0; lane_ < here().lanes.size(); ++lane_)
        for (step_ = 0; step_ < here().lanes[lane_].size(); ++step_) of_step();
    }
    if (slots_ > 1)
      mutants_.push_back({"fewer slots: than the algorithm's least", plan_, slots_ - 1});
    return std::move(mutants_);
  }

 private:
  using Steps = std::vector<Step>;
  const RankListing& here() const { return *ranks_[rank_]; }
  const Step& step() const { return here().lanes[lane_][step_]; }

  void add(std::string_view kind, RankListing changed) {
    Mutant mutant;
    mutant.description = fmt::format("{}: rank {} lane {} step {}: {}", kind, rank_, lane_, step_,
                                     print(step(), static_cast<int>(lane_), here().tokens));
    mutant.slots = slots_;
    mutant.plan = plan_;
    mutant.plan.line = nullptr;
    auto ranks = ranks_;
    ranks[rank_] = std::make_shared<const RankListing>(std::move(changed));
    mutant.plan.program = programs(std::move(ranks));
    mutants_.push_back(std::move(mutant));
  }

  void add_token(std::size_t token) {
    RankListing changed = here();
    ++changed.tokens[token].count;
    lane_ = step_ = 0;
    add("one token more", std::move(changed));
  }

  void of_step() {
    RankListing dropped = here();
    Steps& steps = dropped.lanes[lane_];
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step_));
    add("drop the step", std::move(dropped));
    if (step_ + 1 < here().lanes[lane_].size()) swap_with_next();
    for (std::size_t stage = 0; stage < step().stages().size(); ++stage) of_stage(stage);
  }

  void swap_with_next() {
    RankListing changed = here();
    Steps& steps = changed.lanes[lane_];
    std::swap(steps[step_], steps[step_ + 1]);
    const auto text = [](const Step& step) { return print(step, 0, {}); };
    if (text(steps[step_]) != text(steps[step_ + 1])) add("swap with the next", std::move(changed));
  }

  void of_stage(std::size_t number) {
    const Stage stage = step().stages()[number];
    const bool first_source = stage.is_source() && (stage.flags & Stage::reduces) == 0;
    if (!first_source && stage.verb != Verb::offer) drop_stage(number);
    if (stage.has_channel()) change_peer(number);
    if (stage.has_span()) change_chunk(number);
    if (stage.has_span()) widen(number);
    if (number > 0 && folds(number) && folds(number - 1)) swap_reduces(number);
  }

  bool folds(std::size_t number) const {
    return (step().stages()[number].flags & Stage::reduces) != 0;
  }

  void swap_reduces(std::size_t second) {
    RankListing changed = here();
    const auto stages = changed.lanes[lane_][step_].stages();
    std::swap(stages[second - 1], stages[second]);
    add("swap two reduces", std::move(changed));
  }

  void widen(std::size_t number) {
    if (step().stages()[number].last >= chunks_of(step().stages()[number])) return;
    RankListing changed = here();
    ++changed.lanes[lane_][step_].stages()[number].last;
    add("one chunk more", std::move(changed));
  }

  /// Scratch has room for one more.
  int chunks_of(const Stage& stage) const {
    if (stage.buffer == Buffer::input) return plan_.collective.input_chunks(plan_.chunks);
    if (stage.buffer == Buffer::output) return plan_.collective.output_chunks(plan_.chunks);
    return stage.last + 1;
  }

  void drop_stage(std::size_t number) {
    RankListing changed = here();
    const auto stages = step().stages();
    Step shorter(stages[number == 0 ? 1 : 0]);
    for (std::size_t i = number == 0 ? 2 : 1; i < stages.size(); ++i)
      if (i != number) shorter.add(stages[i]);
    changed.lanes[lane_][step_] = std::move(shorter);
    const bool reduce = (stages[number].flags & Stage::reduces) != 0;
    add(reduce ? "drop a reduce" : drop_kind(stages[number].verb), std::move(changed));
  }

  static std::string_view drop_kind(Verb verb) {
    switch (verb) {
      case Verb::await:
        return "drop an await";
      case Verb::signal:
        return "drop a signal";
      case Verb::scale:
        return "drop the scale";
      case Verb::write:
        return "drop a write";
      default:
        return "drop a send";
    }
  }

  void change_peer(std::size_t number) {
    const int self = static_cast<int>(rank_);
    const int ranks = plan_.collective.ranks;
    int peer = (step().stages()[number].peer() + 1) % ranks;
    if (peer == self) peer = (peer + 1) % ranks;
    if (peer == step().stages()[number].peer()) return;
    RankListing changed = here();
    changed.lanes[lane_][step_].stages()[number].peer_or_token = peer;
    add("another peer", std::move(changed));
  }

  /// The span moved on by one chunk, round the end of its buffer.
  void change_chunk(std::size_t number) {
    const Stage stage = step().stages()[number];
    const int length = stage.last - stage.first;
    const int first = stage.last < chunks_of(stage) ? stage.first + 1 : 0;
    if (length == 0 || first == stage.first) return;
    RankListing changed = here();
    Stage& moved = changed.lanes[lane_][step_].stages()[number];
    moved.first = first;
    moved.last = first + length;
    add("another chunk", std::move(changed));
  }

  Plan plan_;
  int slots_;
  Listing ranks_;
  std::size_t rank_ = 0;
  std::size_t lane_ = 0;
  std::size_t step_ = 0;
  std::vector<Mutant> mutants_;
};

inline std::vector<Mutant> mutants_of(const Plan& plan, int least_slots) {
  return Mutation(plan, least_slots).all();
}

}  // namespace khoro::test
