// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "plan/collective.h"
#include "plan/grid.h"
#include "support/elements.h"
#include "support/own_reductions.h"
#include "support/scalar.h"

namespace khoro::test {

/// How far from a multiple of 64 bytes the two buffers of a call begin. In place they are one,
/// which lies as the output does.
struct Alignment {
  std::string_view name;
  std::size_t input_bytes = 0;
  std::size_t input_elements = 0;
  std::size_t output_bytes = 0;
  std::size_t output_elements = 0;

  std::size_t input(std::size_t element) const { return input_bytes + input_elements * element; }
  std::size_t output(std::size_t element) const { return output_bytes + output_elements * element; }
};

inline constexpr Alignment alignments[] = {{"aligned", 0, 0, 0, 0},
                                           {"byte", 1, 0, 1, 0},
                                           {"element", 0, 1, 0, 1},
                                           {"apart", 0, 0, 0, 1},
                                           {"odd", 3, 0, 13, 0}};

/// In which of the ways that there are the ranks make a call.
enum class Way { blocking, grouped, stream, plan };
inline constexpr std::string_view way_names[] = {"blocking", "grouped", "stream", "plan"};

/// One call as all ranks of a communicator make it.
struct Case {
  /// Nothing: each rank sends to the next one and receives from the one before, in one group.
  std::optional<CollectiveKind> kind;
  /// The messages are several, with a tag each.
  bool tagged = false;
  /// Blocks differ in length, `count` at the most, and there is room between them.
  bool unequal = false;
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  /// Of Reduction::premul: the factor is read at the call, else when the reduction is made.
  bool late_factor = false;
  /// Of Reduction::user.
  bool commutative = true;
  /// Of the communicator's setting.
  bool exact = false;
  int ranks = 1;
  int root = 0;
  std::size_t count = 0;
  bool in_place = false;
  Alignment alignment = alignments[0];
  /// Of the communicator's setting; null if it forces none.
  const Algorithm* forced = nullptr;
  Way way = Way::blocking;
  std::uint64_t seed = 1;

  std::size_t element() const { return find(dtype)->bytes; }
  /// A message lies as an allreduce does: all that a rank gives and all that it gets.
  Collective collective() const {
    Collective what{kind.value_or(CollectiveKind::allreduce), ranks};
    if (what.has_root()) what.root = root;
    what.unequal = unequal;
    if (!kind || !what.reduces()) return what;
    what.average = reduction == Reduction::avg;
    what.premul = reduction == Reduction::premul;
    what.rank_order = exact || !commutative;
    return what;
  }
  /// Of a rank, for Reduction::premul.
  Scalar factor(int rank) const {
    Scalar factor;
    std::mt19937_64 random(combine(seed, ~static_cast<std::uint64_t>(rank)));
    fill_elements(factor.bytes.data(), 1, dtype, random);
    return factor;
  }
  Arithmetic arithmetic() const {
    const BitFunction function = commutative ? mingle : append;
    return {dtype, reduction, exact ? Partials::f32 : Partials::dtype,
            reduction == Reduction::user ? function : nullptr};
  }
  /// Where the blocks of a rank lie in its buffers.
  Blocks blocks(int rank) const;

 private:
  std::size_t length(int from, int to) const;
  /// Callers say where blocks lie, or they need not.
  enum class Placed { in_a_row, anywhere };
  std::vector<Block> lay(const std::vector<std::size_t>& lengths, Placed placed, int rank) const;
};

/// Of the block that goes from a rank to another. In place it is as long as the one that comes
/// back.
inline std::size_t Case::length(int from, int to) const {
  if (!unequal) return count;
  if (in_place && from > to) std::swap(from, to);
  const std::size_t lengths[] = {count, count / 2, 0, count - count / 3, count > 0 ? 1u : 0u};
  return lengths[mix(combine(seed, static_cast<std::uint64_t>(64 * from + to))) % 5];
}

/// One after the other, or with gaps and by turns the last one first, which is each rank's affair.
inline std::vector<Block> Case::lay(const std::vector<std::size_t>& lengths, Placed placed,
                                    int rank) const {
  std::vector<Block> blocks(lengths.size());
  const bool anywhere = unequal && placed == Placed::anywhere;
  const std::uint64_t turn = seed + static_cast<std::uint64_t>(rank);
  std::size_t end = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t index = anywhere && turn % 2 == 0 ? lengths.size() - 1 - i : i;
    if (anywhere) end += (turn / 2 + i) % 3;
    blocks[index] = {end, lengths[index]};
    end += lengths[index];
  }
  return blocks;
}

inline Blocks Case::blocks(int rank) const {
  const Collective what = collective();
  const bool all_to_all = what.kind == CollectiveKind::alltoall;
  const bool scatters = what.kind == CollectiveKind::scatter;
  const bool gathers =
      what.kind == CollectiveKind::gather || what.kind == CollectiveKind::allgather;
  std::vector<std::size_t> gives, gets;
  for (int i = 0; i < what.input_blocks(); ++i) {
    const int to = what.input_blocks() == 1 ? rank : i;
    gives.push_back(length(all_to_all ? rank : to, to));
  }
  for (int i = 0; i < what.output_blocks(); ++i) {
    const int from = what.output_blocks() == 1 ? rank : i;
    gets.push_back(length(from, all_to_all ? rank : from));
  }
  return {lay(gives, all_to_all || scatters ? Placed::anywhere : Placed::in_a_row, rank),
          lay(gets, all_to_all || gathers ? Placed::anywhere : Placed::in_a_row, rank),
          all_to_all || what.has_root()};
}

inline std::string text(const Case& what) {
  std::string text(what.kind ? name(*what.kind) : what.tagged ? "tagged sendrecv" : "sendrecv");
  if (what.unequal) text += "v";
  text += " of " + std::to_string(what.count) + " " + std::string(find(what.dtype)->name);
  if (what.kind && what.collective().reduces())
    text += " " + std::string(find(what.reduction)->name);
  if (!what.commutative) text += " in rank order";
  if (what.exact) text += ", exact";
  text += ", " + std::to_string(what.ranks) + " ranks";
  if (what.collective().has_root()) text += ", root " + std::to_string(what.root);
  if (what.in_place) text += ", in place";
  text += ", " + std::string(what.alignment.name);
  text += ", by " + std::string(what.forced ? what.forced->name : "choice");
  text += ", " + std::string(way_names[static_cast<std::size_t>(what.way)]);
  return text + ", seed " + std::to_string(what.seed);
}

/// What the communicator of the case must be made with, beside `others`.
inline std::string settings_of(const Case& what, const std::string& others) {
  std::string settings = others;
  if (what.exact) settings += ";KHORO_DETERMINISM=exact";
  if (what.forced)
    settings += ";KHORO_ALGORITHM=" + std::string(name(what.forced->collective)) + ":" +
                std::string(what.forced->name);
  return settings;
}

}  // namespace khoro::test
