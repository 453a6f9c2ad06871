// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "algorithms/build.h"

namespace khoro {

/// How any number of ranks becomes a power of two. The core is as many ranks as the largest power
/// of two that there are; each other rank gives its data to the one before it first, and gets the
/// result from it last.
///
/// The core is numbered in the order of the ranks: numbers that differ in their lowest bits stand
/// for neighbouring ranks. So who folds the nearest first, the lower on the left, folds in rank
/// order.
struct Folding {
  int ranks;

  /// Of the core: 2^rounds ranks.
  int rounds() const { return floor_log2(ranks); }
  int core() const { return 1 << rounds(); }
  /// The first ranks go in pairs, the odd one of which is folded in.
  int pairs() const { return ranks - core(); }
  bool is_folded(int rank) const { return rank < 2 * pairs() && rank % 2 == 1; }
  bool stands_for_two(int rank) const { return rank < 2 * pairs() && rank % 2 == 0; }

  int number_of(int rank) const { return rank < 2 * pairs() ? rank / 2 : rank - pairs(); }
  int rank_of(int number) const { return number < pairs() ? 2 * number : number + pairs(); }
};

}  // namespace khoro
