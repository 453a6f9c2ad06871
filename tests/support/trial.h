// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/execution.h"
#include "plan/verify.h"
#include "support/job.h"
#include "support/memory_channel.h"
#include "support/scalar.h"

namespace khoro::test {

/// How a plan is tried.
struct TrialOptions {
  int slots = 2;
  int tiles = 1;
  bool in_place = false;
  bool references = false;
  /// Of the data, and of the order in which lanes take their steps.
  std::uint64_t seed = 1;
  /// The second step waits until the first has ended.
  std::optional<std::pair<StepAt, StepAt>> order;
  /// This rank never comes.
  int absent = -1;
};

/// What a trial came to.
enum class TrialEnd { done, refused, hangs, left_over };

/// Runs a plan, right or wrong, on executions over memory channels with real data: all chunks of
/// one size, as many tiles as asked for, one step at a time of a lane drawn from the seed. So every
/// order that delays could bring about can come about.
class Trial {
 public:
  Trial(const Plan& plan, Dtype dtype, const TrialOptions& options)
      : plan_(plan),
        options_(options),
        dtype_(dtype),
        reduction_(plan.collective.average ? Reduction::avg : Reduction::sum),
        grid_({plan.collective, plan.chunks, count(), bytes(), granule()}),
        network_({static_cast<std::size_t>(options.slots), slot_bytes(), options.references}),
        random_(options.seed) {}

  TrialEnd run() {
    make_buffers();
    try {
      for (int rank = 0; rank < plan_.collective.ranks; ++rank) prepare(rank);
    } catch (const Error&) {
      return TrialEnd::refused;
    }
    if (!step_all()) return TrialEnd::refused;
    for (const auto& execution : executions_)
      if (execution->advance() != Progress::done) hangs_ = true;
    if (hangs_) return TrialEnd::hangs;
    return network_.quiet() ? TrialEnd::done : TrialEnd::left_over;
  }

  /// All lanes of the rank have ended.
  bool ended(int rank) const {
    return std::none_of(lanes_.begin(), lanes_.end(),
                        [rank](const LaneAt& lane) { return lane.rank == rank && !lane.done; });
  }
  /// The witness could be had: its first step has ended, and its second begun after that, or never
  /// because all hung then.
  bool order_kept() const { return !options_.order || (first_ended_ && (second_began_ || hangs_)); }

  const std::byte* output(int rank) { return buffers_[std::size_t(rank)].output(); }
  bool rest_intact(int rank) const { return buffers_[std::size_t(rank)].rest_intact(); }
  const Grid& grid() const { return grid_; }
  const std::vector<std::vector<std::byte>>& inputs() const { return inputs_; }

  /// Elements of a chunk in a tile.
  std::size_t granule() const { return 128 / bytes(); }

 private:
  struct LaneAt {
    int rank = 0;
    int lane = 0;
    int steps = 0;  // of a tile
    int taken = 0;
    bool done = false;
    bool idle = false;  // it could not move, and nothing has moved since
  };

  std::size_t bytes() const { return find(dtype_)->bytes; }
  std::size_t slot_bytes() const {
    return granule() * carry_bytes(carry_type(dtype_, reduction_)) *
           static_cast<std::size_t>(std::max(plan_.widest_message, 1));
  }
  std::size_t count() const {
    return static_cast<std::size_t>(plan_.chunks / plan_.collective.blocks()) * granule() *
           static_cast<std::size_t>(options_.tiles);
  }

  void make_buffers() {
    JobCall call{dtype_, reduction_, count(), options_.in_place, 0, options_.seed};
    for (int rank = 0; rank < plan_.collective.ranks; ++rank)
      buffers_.emplace_back(plan_.collective, rank, call);
    fill();
    for (JobBuffers& buffers : buffers_) {
      inputs_.emplace_back(buffers.input(), buffers.input() + buffers.input_bytes());
      buffers.remember();
    }
  }

  /// Whole numbers of any bits; or real ones of which large ones cancel, so that what small ones
  /// are lost depends on the order of the sum, and shows in few bits of the result.
  void fill() {
    if (buffers_.empty()) return;
    const std::size_t elements = buffers_[0].input_bytes() / bytes();
    std::uniform_real_distribution<double> small(0.5, 2.0);
    std::vector<double> row(buffers_.size());
    for (std::size_t i = 0; i < elements; ++i) {
      for (double& value : row) value = small(random_);
      const std::size_t up = random_() % row.size();
      const std::size_t down = random_() % row.size();
      if (up != down) {
        row[up] = std::ldexp(1 + double(random_() % 64) / 64, 21);
        row[down] = -row[up];
      }
      for (std::size_t rank = 0; rank < row.size(); ++rank)
        store(buffers_[rank].input() + i * bytes(), row[rank]);
    }
  }

  void store(std::byte* to, double value) {
    if (dtype_ == Dtype::i64) {
      const std::uint64_t bits = random_();
      std::memcpy(to, &bits, 8);
    } else {
      const auto single = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &single, 4);
      if (dtype_ == Dtype::bf16) bits >>= 16;
      std::memcpy(to, &bits, bytes());
    }
  }

  void prepare(int rank) {
    ends_.push_back(std::make_unique<MemoryEnds>(network_, rank));
    ExecutionOptions options;
    options.lending = LendingRule::always(0);
    executions_.push_back(std::make_unique<Execution>(flatten(plan_, rank), plan_.collective,
                                                      *ends_.back(), options));
    Execution& execution = *executions_.back();
    const Image& image = execution.image();
    for (std::size_t lane = 0; lane < image.lanes.size(); ++lane) {
      LaneAt at{rank, static_cast<int>(lane)};
      for (std::uint32_t i = image.lanes[lane].first; i < image.lanes[lane].last; ++i)
        at.steps += (image.stages[i].flags & Stage::ends) != 0;
      lanes_.push_back(at);
    }
    JobBuffers& buffers = buffers_[std::size_t(rank)];
    execution.start({{buffers.input(), buffers.output()}, count(), dtype_, reduction_, 7});
  }

  /// Until nothing moves. False: an execution has failed.
  bool step_all() {
    std::vector<LaneAt*> ready;
    for (;;) {
      ready.clear();
      for (LaneAt& lane : lanes_)
        if (!lane.done && !lane.idle && !held(lane)) ready.push_back(&lane);
      if (ready.empty()) return true;
      LaneAt& lane = *ready[random_() % ready.size()];
      const Progress progress = executions_[std::size_t(lane.rank)]->advance(lane.lane, 1);
      if (progress == Progress::failed) return false;
      lane.done = progress == Progress::done;
      lane.idle = progress == Progress::waiting;
      if (progress != Progress::moved) continue;
      took(lane);
      for (LaneAt& other : lanes_) other.idle = false;
    }
  }

  void took(LaneAt& lane) {
    if (options_.order) {
      first_ended_ |= at(lane) == options_.order->first;
      second_began_ |= first_ended_ && at(lane) == options_.order->second;
    }
    ++lane.taken;
  }

  StepAt at(const LaneAt& lane) const {
    return {lane.rank, lane.lane, lane.taken / lane.steps, lane.taken % lane.steps};
  }

  bool held(const LaneAt& lane) const {
    if (lane.rank == options_.absent) return true;
    return options_.order && !first_ended_ && lane.steps > 0 && at(lane) == options_.order->second;
  }

  const Plan& plan_;
  TrialOptions options_;
  Dtype dtype_;
  Reduction reduction_;
  Grid grid_;
  MemoryNetwork network_;
  std::mt19937_64 random_;
  std::vector<JobBuffers> buffers_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::unique_ptr<MemoryEnds>> ends_;
  std::vector<std::unique_ptr<Execution>> executions_;
  std::vector<LaneAt> lanes_;
  bool first_ended_ = false;
  bool second_began_ = false;
  bool hangs_ = false;
};

/// Runs the plan, and says what came of it in the words of a prediction.
class Observation {
 public:
  Observation(const Plan& plan, const TrialOptions& options) : plan_(plan), options_(options) {
    if (plan.collective.kind == CollectiveKind::barrier) look_for_the_early();
    Trial whole(plan, Dtype::i64, options);
    note(whole);
    if (!comparable()) return;
    find_wrong(whole);
    if (plan.collective.reduces())
      for (Dtype dtype : {Dtype::f32, Dtype::bf16}) find_unequal(dtype);
    std::sort(outcome_.unequal.begin(), outcome_.unequal.end(), [](const auto& a, const auto& b) {
      return std::pair(a.rank, a.chunk) < std::pair(b.rank, b.chunk);
    });
  }

  const Outcome& outcome() const { return outcome_; }
  bool order_kept() const { return order_kept_; }
  bool intact() const { return intact_; }
  /// As good as what the collective asks for.
  bool right() const {
    return !outcome_.refused && !outcome_.hangs && !outcome_.left_over && !outcome_.early &&
           outcome_.wrong.empty() && outcome_.unequal.empty() && intact_;
  }

 private:
  using Chunk = Outcome::Chunk;

  void note(Trial& trial) {
    const TrialEnd end = trial.run();
    outcome_.refused |= end == TrialEnd::refused;
    outcome_.hangs |= end == TrialEnd::hangs;
    outcome_.left_over |= end == TrialEnd::left_over;
    if (end == TrialEnd::refused) return;
    order_kept_ &= trial.order_kept();
    for (int rank = 0; rank < plan_.collective.ranks; ++rank) intact_ &= trial.rest_intact(rank);
  }
  bool comparable() const { return !outcome_.refused && !outcome_.hangs; }

  void look_for_the_early() {
    for (int absent = 0; absent < plan_.collective.ranks; ++absent) {
      TrialOptions options = options_;
      options.absent = absent;
      Trial trial(plan_, Dtype::i64, options);
      if (trial.run() == TrialEnd::refused) continue;
      for (int rank = 0; rank < plan_.collective.ranks; ++rank)
        outcome_.early |= rank != absent && trial.ended(rank);
    }
  }

  template <class Visit>
  void for_every_chunk(Visit visit) const {
    for (int rank = 0; rank < plan_.collective.ranks; ++rank)
      for (int chunk = 0; chunk < plan_.collective.output_chunks(plan_.chunks); ++chunk)
        visit(Chunk{rank, chunk}, plan_.collective.requirement(rank, chunk, plan_.chunks));
  }

  /// Whole numbers tell which contributions are inside, in whatever order.
  void find_wrong(Trial& trial) {
    const ScalarReference scalar(
        {Dtype::i64, plan_.collective.average ? Reduction::avg : Reduction::sum});
    for_every_chunk([&](Chunk where, const std::optional<Requirement>& required) {
      bool right = true;
      for (std::size_t tile = 0; required && tile < trial.grid().tiles(); ++tile) {
        const Grid::Piece out = trial.grid().piece(Buffer::output, where.chunk, tile);
        const Grid::Piece in = trial.grid().piece(Buffer::input, required->chunk, tile);
        for (std::size_t i = 0; i < out.count; ++i) {
          std::vector<Scalar> row;
          for (int rank = 0; rank < plan_.collective.ranks; ++rank)
            if (required->from == Requirement::all_ranks || required->from == rank)
              row.push_back(scalar.at(trial.inputs()[std::size_t(rank)].data() + (in.first + i) * 8,
                                      Form::dtype));
          const bool average = plan_.collective.reduces() && plan_.collective.average;
          const Scalar expected =
              scalar.fold(Form::dtype, row, average ? std::uint32_t(plan_.collective.ranks) : 0);
          const std::byte* got = trial.output(where.rank) + (out.first + i) * 8;
          right &= scalar.equal(scalar.at(got, Form::dtype), expected);
        }
      }
      if (!right) outcome_.wrong.push_back(where);
    });
  }

  /// Real ones tell the order, among those that hold the right contributions.
  void find_unequal(Dtype dtype) {
    Trial trial(plan_, dtype, options_);
    note(trial);
    if (!comparable()) return;
    std::vector<int> first(std::size_t(plan_.chunks), -1);
    const std::size_t size = find(dtype)->bytes;
    for_every_chunk([&](Chunk where, const std::optional<Requirement>& required) {
      if (!required || required->from != Requirement::all_ranks) return;
      if (std::count(outcome_.wrong.begin(), outcome_.wrong.end(), where) > 0) return;
      int& reference = first[std::size_t(required->chunk)];
      if (reference < 0) reference = where.rank;
      bool equal = true;
      for (std::size_t tile = 0; tile < trial.grid().tiles(); ++tile) {
        const Grid::Piece piece = trial.grid().piece(Buffer::output, where.chunk, tile);
        equal &= std::memcmp(trial.output(where.rank) + piece.first * size,
                             trial.output(reference) + piece.first * size, piece.count * size) == 0;
      }
      if (!equal && std::count(outcome_.unequal.begin(), outcome_.unequal.end(), where) == 0)
        outcome_.unequal.push_back(where);
    });
  }

  const Plan& plan_;
  TrialOptions options_;
  Outcome outcome_;
  bool order_kept_ = true;
  bool intact_ = true;
};

}  // namespace khoro::test
