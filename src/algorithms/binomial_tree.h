// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "algorithms/build.h"

namespace khoro {

/// A rank's place in a binomial tree. Numbers count from the root on; each hangs below itself
/// without its lowest bit.
struct BinomialTree {
  int ranks;
  int root;
  int number;

  BinomialTree(const Collective& collective, int rank)
      : ranks(collective.ranks),
        root(collective.root),
        number((rank + collective.ranks - collective.root) % collective.ranks) {}

  bool is_root() const { return number == 0; }
  int rank_of(int other) const { return (other + root) % ranks; }
  /// Children are at the powers of two below this.
  int reach() const { return is_root() ? 1 << ceil_log2(ranks) : number & -number; }
  bool has_child(int bit) const { return number + bit < ranks; }
  int child(int bit) const { return rank_of(number + bit); }
  int parent() const { return rank_of(number - reach()); }
  /// Ranks of the subtree, and of that of a child.
  int size() const { return std::min(reach(), ranks - number); }
  int size_of_child(int bit) const { return std::min(bit, ranks - number - bit); }
};

}  // namespace khoro
