// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/proof/book.h"
#include "plan/proof/explain.h"
#include "plan/proof/world.h"

namespace khoro::proof {

/// Runs a plan over abstract values: tile after tile, each lane as far as it goes, until nothing
/// moves. Tiles need not overlap here although executors let them: no step of a tile can be needed
/// by an earlier tile, what a tile computes does not depend on the others, and races are judged by
/// what orders two steps, not by when they ran.
///
/// A fault of data does not stop the run, so that its outcome is known; the first one is kept. A
/// fault of form does.
class Machine {
 public:
  Machine(const Plan& plan, const VerifyOptions& options, Book* book = nullptr);

  Verdict run();

  /// An output to be explained with the help of a second run.
  const std::optional<Suspect>& suspect() const noexcept { return suspect_; }

 private:
  enum class Access : std::uint8_t { read, write };

  // machine.cpp: the run.
  bool start_tile(int tile);
  bool start_rank(int rank);
  void place_clocks();
  void wake(int position);
  void work();
  void run_lane(Position& lane);
  void end_tile();

  // examine.cpp: is the step well formed, is all there that it needs, and does it fit?
  bool examine(Position& lane);
  bool inspect(Position& lane);
  bool inspect_form(const Position& lane, const Stage& stage, int& phase);
  bool inspect_span(const Position& lane, const Stage& stage);
  bool inspect_token(const Position& lane, const Stage& stage);
  bool agrees(const Position& lane, const Stage& stage, const Channel* channel);
  bool fits(const Position& lane, const Stage& stage, const Channel& channel);
  bool lacks_token(Position& lane, const Stage& stage);
  bool lacks_loan(Position& lane, const Stage& stage);
  bool lacks_channel(Position& lane, const Stage& stage, Channel& channel);
  Channel* channel_of(Position& lane, const Stage& stage);
  std::optional<std::uint32_t> port_of(Position& lane, int peer, std::uint8_t index, bool sends);

  // fire.cpp: what the step does. These return false if it cannot be done.
  bool fire(Position& lane);
  void enter(Position& lane);
  void take_token(Position& lane, int number);
  void raise(const Position& lane, int number);
  bool source(Position& lane, const Stage& stage, Channel* channel);
  void fold_in(const Position& lane);
  void divide(const Position& lane);
  void round_accumulator();
  bool write(const Position& lane, Span span);
  void transmit(const Position& lane, const Stage& stage, Channel& channel);
  void refer(Channel::Slot& slot) const;
  void lend(const Position& lane, Channel& channel);
  void give_back(Channel& channel);
  bool receive(const Position& lane, const Stage& stage, Channel& channel, Value* values);
  void grant(const Position& lane, const Stage& stage, Channel& channel);
  void take_back(const Position& lane, Channel& channel, Value* values);

  // memory.cpp: what is in memory, and who touches it.
  Span overlaid(const RankState& rank, Span span) const;
  Value* cell(RankState& rank, Buffer buffer, int chunk);
  History* history(RankState& rank, Buffer buffer, int chunk);
  std::optional<int> input_at(int rank, Buffer buffer, int chunk) const;
  bool read(const Position& lane, const Stage& stage, Value* values);
  void store(const Position& lane, Span span, Value* values);
  bool equal_or_apart(const Position& lane, Span span);
  bool outgrows(Span span) const;
  void check_windows(const Position& lane, Span span);
  void touch(const Position& lane, Span span, Access access);
  void race(const Position& lane, Epoch other, const std::string& what);
  int size_class(int chunk) const noexcept;

  // outputs.cpp: the end of a tile.
  void check_stuck();
  void check_loans();
  void check_left_over();
  void check_outputs();
  void check_output(int rank, int chunk);
  bool lies_there(int rank, int chunk, const Requirement& required);
  void check_barrier();
  void suspect(Fault fault, const Suspect& suspect);
  std::uint64_t required_sum(const Requirement& required);
  std::uint64_t rank_order(std::int32_t chunk) const;

  // faults.cpp: the first fault is kept. `stop` and `malformed` end the run and return false.
  void note(Fault fault, std::optional<StepAt> where, std::string place, std::string message);
  void note(Fault fault, const Position& lane, const std::string& message);
  bool stop(Fault fault, const Position& lane, const std::string& message);
  bool malformed(const Position& lane, const std::string& message);
  StepAt at(const Position& lane) const;
  StepAt at(Epoch epoch) const;

  World world_;
  Book* book_;
  std::unordered_map<std::uint64_t, Channel*> channel_index_;
  std::vector<int> work_;    // positions that may move
  std::vector<int> places_;  // of the clocks, as positions; empty if nothing can race
  int block_ = 0;            // chunks of a block, which may be the whole vector
  bool stopped_ = false;
  bool premultiplied_ = false;  // it is asked for, or some step has applied a factor
  Verdict verdict_;
  std::optional<Suspect> suspect_;
  std::vector<std::optional<std::uint64_t>> sums_;  // of all ranks, per chunk
  std::vector<Value> firsts_;                       // per chunk, what the lowest rank holds

  // Of the step at hand.
  std::uint64_t inspected_ = 0;  // steps so far
  std::vector<Value> accumulator_;
  std::vector<Value> operand_;
  std::size_t chunks_ = 0;  // in both; what the step's first source has
  std::vector<Span> read_spans_;
  std::vector<Span> written_spans_;
  std::vector<Span> narrow_spans_;  // of scratch, read as the dtype
  bool sized_ = false;              // it has a source so far
  bool received_ = false;           // and one of them is a channel
  bool sourced_ = false;            // the accumulator holds something
  bool plain_read_ = false;         // it is nothing but one span
  bool unrounded_ = false;
  Epoch now_;
};

}  // namespace khoro::proof
