// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "plan/program.h"

namespace khoro::test {

/// The order signatures of a plan: for every output chunk the tree of folds and rounding points
/// that makes it.
class Signatures {
 public:
  /// Equal trees have equal numbers.
  struct Node {
    int rank = -1;  // of a leaf: chunk `chunk` of that rank's input
    int chunk = 0;
    std::vector<int> operands;  // folded from left to right
    bool scaled = false;
    Form form = Form::dtype;   // that the result is rounded to
    std::vector<int> factors;  // of each operand: the rank whose factor it is times, or -1
    auto key() const { return std::tie(rank, chunk, operands, scaled, form, factors); }
    bool operator<(const Node& other) const { return key() < other.key(); }
  };
  static constexpr int nothing = -1;

  /// Those of what the plan does, found by following it over endless queues, one chunk at a time.
  explicit Signatures(const Plan& plan) {
    const Collective& collective = plan.collective;
    for (int rank = 0; rank < collective.ranks; ++rank) {
      Rank& at = ranks_.emplace_back(Rank{plan.program(rank), {}, {}, {}});
      for (const Token& token : at.program.tokens) at.tokens.push_back(token.count);
      for (int chunk = 0; chunk < collective.input_chunks(plan.chunks); ++chunk)
        at.buffers[Buffer::input].push_back(leaf(rank, chunk));
      at.buffers[Buffer::output].assign(
          static_cast<std::size_t>(collective.output_chunks(plan.chunks)), nothing);
      for (Lane& lane : at.program.lanes) at.steps.push_back(lane.next());
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < collective.ranks; ++rank)
        for (std::size_t lane = 0; lane < ranks_[std::size_t(rank)].steps.size(); ++lane)
          while (fire(rank, lane)) moved = true;
    }
    for (const Rank& rank : ranks_)
      for (const Step* step : rank.steps)
        if (step != nullptr) throw std::logic_error("the plan does not end");
  }

  /// Those of a fold from the left in rank order that rounds once, which a collective can ask for:
  /// whatever the plan does. Precondition: it asks for that.
  static Signatures in_rank_order(const Plan& plan) {
    const Collective& collective = plan.collective;
    Signatures made;
    for (int rank = 0; rank < collective.ranks; ++rank) {
      Value& output = made.ranks_.emplace_back().buffers[Buffer::output];
      for (int chunk = 0; chunk < collective.output_chunks(plan.chunks); ++chunk) {
        const auto required = collective.requirement(rank, chunk, plan.chunks);
        output.push_back(required ? made.left_fold(collective, required->chunk) : nothing);
      }
    }
    return made;
  }

  const Node& node(int index) const { return nodes_.at(static_cast<std::size_t>(index)); }
  int output(int rank, int chunk) const {
    return ranks_.at(std::size_t(rank)).buffers.at(Buffer::output).at(std::size_t(chunk));
  }

 private:
  using Value = std::vector<int>;  // a tree for each chunk
  Signatures() = default;
  struct Rank {
    Program program;
    std::vector<int> tokens;
    std::vector<Step*> steps;
    std::map<Buffer, Value> buffers;
  };
  using Name = std::tuple<int, int, int>;  // from, to, index

  int number(const Node& node) {
    const auto [place, fresh] = numbers_.try_emplace(node, static_cast<int>(nodes_.size()));
    if (fresh) nodes_.push_back(node);
    return place->second;
  }

  int leaf(int rank, int chunk) { return number({rank, chunk, {}, false, Form::dtype, {}}); }

  int left_fold(const Collective& collective, int chunk) {
    Node fold{-1, 0, {}, collective.average, Form::dtype, {}};
    for (int rank = 0; rank < collective.ranks; ++rank) {
      fold.operands.push_back(leaf(rank, chunk));
      fold.factors.push_back(collective.premul ? rank : -1);
    }
    return number(fold);
  }

  static Name name(const Stage& stage, int rank, std::size_t lane) {
    const int index = stage.index == own_lane ? static_cast<int>(lane) : stage.index;
    const bool sends = stage.verb == Verb::send || stage.verb == Verb::put;
    return sends ? Name{rank, stage.peer(), index} : Name{stage.peer(), rank, index};
  }

  bool ready(const Step& step, int rank, std::size_t lane) {
    for (const Stage& stage : step.stages()) {
      if (stage.verb == Verb::await &&
          ranks_[std::size_t(rank)].tokens[std::size_t(stage.token())] == 0)
        return false;
      if ((stage.verb == Verb::recv || stage.verb == Verb::take) &&
          messages_[name(stage, rank, lane)].empty())
        return false;
      if (stage.verb == Verb::put && windows_[name(stage, rank, lane)] == 0) return false;
    }
    return true;
  }

  bool fire(int rank, std::size_t lane) {
    Rank& at = ranks_[std::size_t(rank)];
    const Step* step = at.steps[lane];
    if (step == nullptr || !ready(*step, rank, lane)) return false;
    std::vector<Value> sources;
    std::vector<int> factors;
    Value value;
    bool changes = false;
    bool scaled = false;
    const auto fold = [&] {  // when the value is first stored or sent
      if (sources.empty()) return;
      value = changes || scaled ? round(sources, factors, scaled) : sources.front();
      sources.clear();
    };
    for (const Stage& stage : step->stages()) {
      const Name channel = name(stage, rank, lane);
      const bool premul = (stage.flags & Stage::premul) != 0;
      changes |= premul || (stage.flags & Stage::reduces) != 0;
      if (stage.is_source()) factors.push_back(premul ? rank : -1);
      switch (stage.verb) {
        case Verb::await:
          --at.tokens[std::size_t(stage.token())];
          break;
        case Verb::signal:
          ++at.tokens[std::size_t(stage.token())];
          break;
        case Verb::offer:
          ++windows_[channel];
          offered_[channel].push_back(stage.span());
          break;
        case Verb::read:
          sources.push_back(read(at, stage.span()));
          break;
        case Verb::recv:
          sources.push_back(messages_[channel].front());
          messages_[channel].pop_front();
          break;
        case Verb::take:
          write(at, offered_[channel].front(), messages_[channel].front());
          sources.push_back(read(at, offered_[channel].front()));
          offered_[channel].pop_front();
          messages_[channel].pop_front();
          break;
        case Verb::scale:
          scaled = true;
          break;
        case Verb::write:
          fold();
          value = write(at, stage.span(), value);
          break;
        case Verb::put:
          --windows_[channel];
          [[fallthrough]];
        case Verb::send:
          fold();
          messages_[channel].push_back(value);
          break;
      }
    }
    at.steps[lane] = at.program.lanes[lane].next();
    return true;
  }

  Value round(const std::vector<Value>& sources, const std::vector<int>& factors, bool scaled) {
    Value result;
    for (std::size_t chunk = 0; chunk < sources.front().size(); ++chunk) {
      Node node{-1, 0, {}, scaled, Form::carry, factors};
      for (const Value& source : sources) node.operands.push_back(source.at(chunk));
      result.push_back(number(node));
    }
    return result;
  }

  Value read(Rank& at, Span span) {
    Value& buffer = at.buffers[span.buffer];
    if (buffer.size() < std::size_t(span.last)) buffer.resize(std::size_t(span.last), nothing);
    Value value(buffer.begin() + span.first, buffer.begin() + span.last);
    for (int chunk : value)
      if (chunk == nothing) throw std::logic_error("a chunk is read before it is written");
    return value;
  }

  /// Output holds the dtype: what is a partial result is rounded.
  Value write(Rank& at, Span span, Value value) {
    Value& buffer = at.buffers[span.buffer];
    if (buffer.size() < std::size_t(span.last)) buffer.resize(std::size_t(span.last), nothing);
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (span.buffer == Buffer::output && node(value[i]).form == Form::carry)
        value[i] = number({-1, 0, {value[i]}, false, Form::dtype, {-1}});
      buffer.at(std::size_t(span.first) + i) = value[i];
    }
    return value;
  }

  std::vector<Node> nodes_;
  std::map<Node, int> numbers_;
  std::vector<Rank> ranks_;
  std::map<Name, std::deque<Value>> messages_;
  std::map<Name, int> windows_;  // offered and not filled
  std::map<Name, std::deque<Span>> offered_;
};

}  // namespace khoro::test
