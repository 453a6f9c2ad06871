// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/build.h"

namespace khoro {

// Of gathering by doubling: whoever has some chunks of the output, its own and those after it, gets
// as many more, or the rest.

/// How many chunks a rank that has `have` of `all` may give to one that has as many others.
constexpr int given_to_double(int have, int all) noexcept { return std::min(have, all - have); }

/// `count` chunks of an output of `all` from `first` on, round its end: one span, or two.
inline std::vector<Span> around(int first, int count, int all) {
  const int end = first + count;
  if (end <= all) return {output(first, end)};
  return {output(first, all), output(0, end - all)};
}

/// The most that given_to_double() comes to while 1 chunk is doubled to `all`.
constexpr int most_given(int all) noexcept {
  int most = 1;
  for (int have = 1; have < all; have *= 2) most = std::max(most, given_to_double(have, all));
  return most;
}

}  // namespace khoro
