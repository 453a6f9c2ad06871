// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "algorithms/algorithm.h"

namespace khoro {

/// What carries the messages, which is the same for all ranks of a communicator.
enum class Medium : std::uint8_t { memory, sockets };

/// One line of the default rule: what it is for, and what it takes.
struct RuleRow {
  static constexpr std::size_t any_bytes = ~std::size_t{0};
  static constexpr int any_ranks = 1 << 30;

  CollectiveKind collective;
  int most_ranks = any_ranks;
  std::size_t most_bytes = any_bytes;  // of the whole vector
  std::string_view algorithm;
  std::string_view why;
  /// It is for those alone who ask for a fold in rank order.
  bool rank_order = false;
  /// It is for ranks alone whose messages go over sockets.
  bool over_sockets = false;
};

/// The default rule. Of the lines that fit a call the first one decides; one always fits.
std::span<const RuleRow> default_rule() noexcept;

struct Choice {
  const Algorithm* algorithm = nullptr;
  Shape shape;
  /// In one clause; lives as long as the program.
  std::string_view why;
};

/// Whether the algorithm can run on channels of so many slots. A rank that is alone needs none.
bool runs_with(const Algorithm& algorithm, int ranks, int slots) noexcept;

/// Whether the algorithm is one for the collective as it is asked for.
bool can_do(const Algorithm& algorithm, const Collective& collective) noexcept;

/// The default rule applied: of the lines that fit, the first whose algorithm can do the collective
/// and runs with `slots`; if there is none, the last line that does, whatever it is for. Where no
/// algorithm of the collective does, the choice is one that does not. Depends only on what all
/// ranks know alike; `bytes` are those of the whole vector. Allocates nothing.
Choice choose(const Collective& collective, std::size_t bytes, const Topology& topology, int slots,
              Medium medium = Medium::memory) noexcept;

}  // namespace khoro
