// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/grid.h"
#include "plan/program.h"
#include "support/scalar.h"

namespace khoro::test {

/// The order signatures of a plan: for every output chunk the tree of folds and rounding points
/// that makes it. Found by following the plan over endless queues, one chunk at a time.
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

  explicit Signatures(const Plan& plan) : plan_(plan) {
    const Collective& collective = plan.collective;
    for (int rank = 0; rank < collective.ranks; ++rank) {
      Rank& at = ranks_.emplace_back(Rank{plan.program(rank), {}, {}, {}});
      for (const Token& token : at.program.tokens) at.tokens.push_back(token.count);
      for (int chunk = 0; chunk < collective.input_chunks(plan.chunks); ++chunk)
        at.buffers[Buffer::input].push_back(number({rank, chunk, {}, false, Form::dtype, {}}));
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

  const Node& node(int index) const { return nodes_.at(static_cast<std::size_t>(index)); }
  int output(int rank, int chunk) const {
    return ranks_.at(std::size_t(rank)).buffers.at(Buffer::output).at(std::size_t(chunk));
  }

 private:
  using Value = std::vector<int>;  // a tree for each chunk
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

  const Plan& plan_;
  std::vector<Node> nodes_;
  std::map<Node, int> numbers_;
  std::vector<Rank> ranks_;
  std::map<Name, std::deque<Value>> messages_;
  std::map<Name, int> windows_;  // offered and not filled
  std::map<Name, std::deque<Span>> offered_;
};

/// How the library lays the chunks of a plan over a call's elements. Unequal blocks take the place
/// of the count, and outlive the grid.
inline Grid grid_of(const Plan& plan, Dtype dtype, Reduction reduction, std::size_t count,
                    std::size_t slot_bytes, const Blocks* blocks = nullptr) {
  const std::size_t element = find(dtype)->bytes;
  const std::size_t carry =
      plan.collective.reduces() ? carry_bytes(carry_type(dtype, reduction)) : element;
  return Grid({plan.collective, plan.chunks, count, element,
               slot_bytes / (static_cast<std::size_t>(plan.widest_message) * carry), blocks});
}

/// What the outputs of a call must be, to the bit, by the plan's order signatures evaluated one
/// element at a time.
class Oracle {
 public:
  /// `inputs` and `grid` outlive it. `factors` are those of the ranks, of Reduction::premul.
  Oracle(const Plan& plan, Dtype dtype, Reduction reduction, const Grid& grid,
         const std::vector<std::vector<std::byte>>& inputs, Partials partials = Partials::dtype,
         std::vector<Scalar> factors = {})
      : Oracle(plan, std::make_shared<Signatures>(plan), dtype, reduction, {&grid, 1}, inputs,
               partials, std::move(factors)) {}
  /// `signatures`, those of the plan, are shared by the oracles of many calls. Of grids there is
  /// one for all ranks, or one for each.
  Oracle(const Plan& plan, std::shared_ptr<const Signatures> signatures, Dtype dtype,
         Reduction reduction, std::span<const Grid> grids,
         const std::vector<std::vector<std::byte>>& inputs, Partials partials = Partials::dtype,
         std::vector<Scalar> factors = {})
      : plan_(plan),
        signatures_(std::move(signatures)),
        scalar_(dtype, reduction, partials),
        size_(find(dtype)->bytes),
        grids_(grids),
        inputs_(inputs),
        factors_(std::move(factors)) {}

  /// Compares the output of a rank; chunks that receive nothing are not looked at.
  bool matches(int rank, const std::byte* output) {
    for (std::size_t tile = 0; tile < grid(rank).tiles(); ++tile)
      if (!matches(rank, tile, output)) return false;
    return true;
  }
  bool matches(int rank, std::size_t tile, const std::byte* output) {
    for (int chunk = 0; chunk < plan_.collective.output_chunks(plan_.chunks); ++chunk) {
      const int tree = signatures_->output(rank, chunk);
      if (tree == Signatures::nothing) continue;
      const Grid::Piece piece = grid(rank).piece(Buffer::output, chunk, tile);
      const std::vector<Scalar>& expected = value(tree, tile);
      if (expected.size() != piece.count) return false;
      for (std::size_t i = 0; i < piece.count; ++i)
        if (!scalar_.equal(scalar_.at(output + (piece.first + i) * size_, Form::dtype),
                           expected[i]))
          return false;
    }
    return true;
  }
  /// Gives back the memory of what was evaluated: a value takes much more than its element.
  void forget() { values_.clear(); }

 private:
  const Grid& grid(int rank) const { return grids_[grids_.size() == 1 ? 0 : std::size_t(rank)]; }

  const std::vector<Scalar>& value(int tree, std::size_t tile) {
    const auto found = values_.find({tree, tile});
    if (found != values_.end()) return found->second;
    const Signatures::Node& node = signatures_->node(tree);
    std::vector<Scalar> result;
    if (node.rank >= 0) {
      const Grid::Piece piece = grid(node.rank).piece(Buffer::input, node.chunk, tile);
      const std::vector<std::byte>& input = inputs_[std::size_t(node.rank)];
      result.reserve(piece.count);
      for (std::size_t i = 0; i < piece.count; ++i)
        result.push_back(scalar_.at(input.data() + (piece.first + i) * size_, Form::dtype));
    } else {
      const auto ranks = static_cast<std::uint32_t>(plan_.collective.ranks);
      std::vector<const std::vector<Scalar>*> operands;
      for (int operand : node.operands) operands.push_back(&value(operand, tile));
      std::vector<const Scalar*> factors;
      for (int rank : node.factors)
        factors.push_back(rank < 0 ? nullptr : &factors_.at(std::size_t(rank)));
      std::vector<Scalar> row(operands.size());
      result.reserve(operands[0]->size());
      for (std::size_t i = 0; i < operands[0]->size(); ++i) {
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = operands[k]->at(i);
        result.push_back(scalar_.fold(node.form, row, node.scaled ? ranks : 0, factors));
      }
    }
    return values_[{tree, tile}] = std::move(result);
  }

  const Plan& plan_;
  std::shared_ptr<const Signatures> signatures_;
  ScalarReference scalar_;
  std::size_t size_;
  std::span<const Grid> grids_;
  const std::vector<std::vector<std::byte>>& inputs_;
  std::vector<Scalar> factors_;
  std::map<std::pair<int, std::size_t>, std::vector<Scalar>> values_;
};

}  // namespace khoro::test
