// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/hash.h"
#include "communicator/group.h"
#include "planner/rule.h"
#include "support/job.h"

namespace khoro::test {

/// What the ranks of a play call, drawn from a seed, act by act: collectives of every kind,
/// messages, and groups of both, with real data. Knows what must come of them.
class Script {
 public:
  Script(std::uint64_t seed, int ranks, const Settings& settings)
      : state_(mix(seed)),
        ranks_(ranks),
        slot_bytes_(static_cast<std::size_t>(settings.slot_bytes)),
        slots_(static_cast<int>(settings.slots)) {
    const auto colon = settings.algorithm.find(':');
    if (colon != std::string::npos)
      forced_ = find_algorithm(*collective_named(settings.algorithm.substr(0, colon)),
                               settings.algorithm.substr(colon + 1));
    for (int act = 0; act < acts; ++act) draw_act();
    name_calls();
  }

  static constexpr int acts = 6;

  /// What rank `rank` does in an act. Blocks; throws `Error`.
  void play(Communicator& communicator, int rank, int act) {
    const Act& now = acts_[at(act)];
    std::vector<Call> calls = calls_of(now, rank);
    for (Call& call : calls) communicator.check(call);
    if (calls.size() == 1 && !now.grouped) return communicator.run(calls[0]);
    Batch batch(communicator);
    for (const Call& call : calls) batch.add(call);
    if (!calls.empty()) run_together({&batch, 1});
  }
  /// How long the rank does something else before.
  Duration pause(int rank, int act) const { return acts_[at(act)].pauses[at(rank)]; }
  /// How the rank's calls of an act are named in reports.
  const std::set<std::string>& titles(int rank, int act) const {
    return acts_[at(act)].titles[at(rank)];
  }
  /// Ends only after all have begun, if it ends well.
  bool is_barrier(int act) const {
    return acts_[at(act)].parts.size() == 1 &&
           acts_[at(act)].parts[0]->signature.kind == CallKind::barrier;
  }

  /// Every output of the rank has the right bits, and nothing else was written. After play().
  bool right(int rank, int act) {
    for (const auto& part : acts_[at(act)].parts)
      if (part->plays(rank) && !(part->right(rank, slot_bytes_) && part->intact(rank)))
        return false;
    return true;
  }
  /// Inputs, and what is no buffer, are as they were. After play() has thrown, too.
  bool intact(int rank, int act) {
    for (const auto& part : acts_[at(act)].parts)
      if (!part->intact(rank)) return false;
    return true;
  }
  /// The rank has its buffers back and uses them for something else.
  void spoil(int rank, int act) {
    for (const auto& part : acts_[at(act)].parts) part->buffers[at(rank)].spoil();
  }

 private:
  /// One collective, or one message.
  struct Part {
    Signature signature;    // of a message: as its sender names it
    int from = -1;          // of a message
    std::uint32_t tag = 0;  // of a message
    Plan plan;              // of a collective
    std::vector<JobBuffers> buffers;
    std::vector<std::vector<std::byte>> inputs;
    std::unique_ptr<Grid> grid;
    std::unique_ptr<Oracle> oracle;

    bool is_message() const { return from >= 0; }
    bool plays(int rank) const { return !is_message() || rank == from || rank == signature.peer; }
    bool intact(int rank) const { return buffers[at(rank)].rest_intact(); }

    bool right(int rank, std::size_t slot_bytes) {
      if (is_message()) {
        const std::vector<std::byte>& sent = inputs[at(from)];
        return rank == from || std::equal(sent.begin(), sent.end(), buffers[at(rank)].output());
      }
      if (signature.kind == CallKind::barrier || signature.count == 0) return true;
      if (!oracle) {
        const auto [kind, dtype, reduction, peer, count] = signature;
        const Arithmetic arithmetic{dtype, reduction};
        grid = std::make_unique<Grid>(grid_of(plan, arithmetic, count, slot_bytes));
        oracle = std::make_unique<Oracle>(plan, arithmetic, *grid, inputs);
      }
      return oracle->matches(rank, buffers[at(rank)].output());
    }
  };
  struct Act {
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<Duration> pauses;               // by rank
    std::vector<std::set<std::string>> titles;  // by rank
    bool grouped = false;
  };

  static std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }
  std::uint64_t draw(std::uint64_t bound) { return (state_ = mix(state_)) % bound; }

  void draw_act() {
    Act& act = acts_.emplace_back();
    for (int rank = 0; rank < ranks_; ++rank)
      act.pauses.push_back(Duration(draw(4) == 0 ? draw(3'000'000) : draw(2'000)));
    act.titles.resize(at(ranks_));
    const std::uint64_t kind = draw(8);
    act.grouped = kind >= 5;
    if (kind != 4) add_collective(act);
    const std::uint64_t messages = kind < 4 ? 0 : kind == 4 ? 1 : 1 + draw(2 * at(ranks_));
    for (std::uint64_t i = 0; i < messages; ++i) add_message(act);
    if (kind == 7) add_collective(act);
  }

  void add_collective(Act& act) {
    auto part = std::make_unique<Part>();
    Collective collective{static_cast<CollectiveKind>(draw(9)), ranks_};
    if (forced_ != nullptr && draw(2) == 0) collective.kind = forced_->collective;
    JobCall call = draw_call();
    if (collective.has_root()) collective.root = static_cast<int>(draw(at(ranks_)));
    if (!collective.reduces()) call.reduction = Reduction::sum;
    collective.average = call.reduction == Reduction::avg;
    if (collective.kind == CollectiveKind::barrier) call = {.count = 0};
    const std::size_t bytes = call.count * find(call.dtype)->bytes * at(collective.blocks());
    const Topology topology = Topology::one_machine(ranks_);
    Choice choice = choose(collective, bytes, topology, slots_);
    if (forced_ != nullptr && forced_->collective == collective.kind) choice.algorithm = forced_;
    choice.shape.slots = slots_;
    part->plan = make_plan(*choice.algorithm, collective, topology, choice.shape);
    part->signature = {static_cast<CallKind>(collective.kind), call.dtype, call.reduction,
                       collective.root, call.count};
    if (collective.kind == CollectiveKind::barrier) part->signature = {CallKind::barrier};
    fill(*part, collective, call);
    act.parts.push_back(std::move(part));
  }

  void add_message(Act& act) {
    auto part = std::make_unique<Part>();
    JobCall call = draw_call();
    call.in_place = false;
    part->from = static_cast<int>(draw(at(ranks_)));
    const int to = (part->from + 1 + static_cast<int>(draw(at(ranks_ - 1)))) % ranks_;
    part->signature = {CallKind::send, call.dtype, Reduction::sum, to, call.count};
    if (draw(2) == 0) part->tag = static_cast<std::uint32_t>(1 + draw(3)) * 0x55555555;
    fill(*part, {CollectiveKind::broadcast, ranks_}, call);
    act.parts.push_back(std::move(part));
  }

  /// Nothing, little, or several tiles.
  JobCall draw_call() {
    JobCall call;
    call.dtype = dtypes()[draw(dtypes().size())].dtype;
    do call.reduction = reductions()[draw(reductions().size())].reduction;
    while (!applies(call.reduction, call.dtype));
    const std::uint64_t size = draw(8);
    const std::size_t elements = slot_bytes_ / find(call.dtype)->bytes;
    call.count = size == 0 ? draw(3) : size < 6 ? draw(64) : draw(6 * elements);
    call.in_place = draw(2) == 0;
    call.misalignment = draw(9);
    call.seed = draw(1u << 30);
    return call;
  }

  void fill(Part& part, const Collective& collective, const JobCall& call) {
    std::mt19937_64 random(call.seed);
    for (int rank = 0; rank < ranks_; ++rank) {
      JobBuffers& buffers = part.buffers.emplace_back(collective, rank, call);
      fill_elements(buffers.input(), buffers.input_bytes() / find(call.dtype)->bytes, call.dtype,
                    random);
      part.inputs.emplace_back(buffers.input(), buffers.input() + buffers.input_bytes());
      buffers.remember();
    }
  }

  std::vector<Call> calls_of(const Act& act, int rank) {
    std::vector<Call> calls;
    for (const auto& part : act.parts) {
      if (!part->plays(rank)) continue;
      JobBuffers& buffers = part->buffers[at(rank)];
      Call call{part->signature, {buffers.input(), buffers.output()}, nullptr, nullptr, part->tag};
      if (part->is_message() && rank != part->from) {
        call.signature.kind = CallKind::recv;
        call.signature.peer = part->from;
      }
      calls.push_back(call);
    }
    // Each rank names tags in an order of its own, and keeps that of the messages with one tag.
    const auto turn = [rank](const Call& call) {
      return call.tag == 0 ? 0 : mix(combine(call.tag, static_cast<std::uint64_t>(rank)));
    };
    std::stable_sort(calls.begin(), calls.end(),
                     [&](const Call& a, const Call& b) { return turn(a) < turn(b); });
    return calls;
  }

  void name_calls() {
    using Counter = std::tuple<CallKind, int, std::uint32_t>;
    std::vector<std::map<Counter, std::uint64_t>> numbers(at(ranks_));
    for (Act& act : acts_)
      for (int rank = 0; rank < ranks_; ++rank)
        for (const Call& call : calls_of(act, rank)) {
          const CallKind kind = call.signature.kind;
          const auto counter = call.signature.point_to_point()
                                   ? Counter(kind, int{call.signature.peer}, call.tag)
                                   : Counter(CallKind::allreduce, 0, 0);
          act.titles[at(rank)].insert(title(kind, ++numbers[at(rank)][counter], call.tag));
        }
  }

  std::uint64_t state_;
  int ranks_;
  std::size_t slot_bytes_;
  int slots_;
  const Algorithm* forced_ = nullptr;
  std::vector<Act> acts_;
};

}  // namespace khoro::test
