// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/grid.h"
#include "plan/program.h"
#include "support/scalar.h"
#include "support/signatures.h"

namespace khoro::test {

/// How the library lays the chunks of a plan over a call's elements. Unequal blocks take the place
/// of the count, and outlive the grid.
inline Grid grid_of(const Plan& plan, const Arithmetic& arithmetic, std::size_t count,
                    std::size_t slot_bytes, const Blocks* blocks = nullptr) {
  const std::size_t element = arithmetic.bytes(Form::dtype);
  const std::size_t carry = plan.collective.reduces() ? arithmetic.bytes(Form::carry) : element;
  return Grid({plan.collective, plan.chunks, count, element,
               slot_bytes / (static_cast<std::size_t>(plan.widest_message) * carry), blocks,
               &plan.weights});
}

/// What the outputs of a call must be, to the bit, by the plan's order signatures evaluated one
/// element at a time.
class Oracle {
 public:
  /// `inputs` and `grid` outlive it. `factors` are those of the ranks, of Reduction::premul.
  Oracle(const Plan& plan, const Arithmetic& arithmetic, const Grid& grid,
         const std::vector<std::vector<std::byte>>& inputs, std::vector<Scalar> factors = {})
      : Oracle(plan, std::make_shared<Signatures>(plan), arithmetic, {&grid, 1}, inputs,
               std::move(factors)) {}
  /// `signatures`, those of the plan, are shared by the oracles of many calls. Of grids there is
  /// one for all ranks, or one for each.
  Oracle(const Plan& plan, std::shared_ptr<const Signatures> signatures,
         const Arithmetic& arithmetic, std::span<const Grid> grids,
         const std::vector<std::vector<std::byte>>& inputs, std::vector<Scalar> factors = {})
      : plan_(plan),
        signatures_(std::move(signatures)),
        scalar_(arithmetic),
        size_(arithmetic.bytes(Form::dtype)),
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
      result.resize(piece.count);
      for (std::size_t i = 0; i < piece.count; ++i)
        result[i] = scalar_.at(input.data() + (piece.first + i) * size_, Form::dtype);
    } else {
      const auto ranks = static_cast<std::uint32_t>(plan_.collective.ranks);
      std::vector<const std::vector<Scalar>*> operands;
      for (int operand : node.operands) operands.push_back(&value(operand, tile));
      std::vector<const Scalar*> factors;
      for (int rank : node.factors)
        factors.push_back(rank < 0 ? nullptr : &factors_.at(std::size_t(rank)));
      std::vector<Scalar> row(operands.size());
      result.resize(operands[0]->size());
      for (std::size_t i = 0; i < result.size(); ++i) {
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = operands[k]->at(i);
        result[i] = scalar_.fold(node.form, row, node.scaled ? ranks : 0, factors);
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
