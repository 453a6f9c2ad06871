// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "algorithms/algorithm.h"

namespace khoro {

// What most algorithms say in the same words.

template <class... Parameters, class... Args>
Program one_lane(Lane (*lane)(Parameters...), Args&&... args) {
  Program program;
  program.lanes.push_back(lane(std::forward<Args>(args)...));
  return program;
}

/// As chunks() of an algorithm.
inline int one_chunk(const Collective&, const Topology&, const Shape&) { return 1; }
inline int one_chunk_per_rank(const Collective& collective, const Topology&, const Shape&) {
  return collective.ranks;
}

/// The step that completes a reduction: it scales if the collective averages.
inline Step completed(Step step, const Collective& collective) {
  if (collective.average) step.add(scale());
  return step;
}

/// The sum over all ranks in rank order, the peers' parts received and this rank's own read.
inline Step fold_in_rank_order(const Collective& collective, int rank, Span own) {
  const auto part = [&](int from) { return from == rank ? read(own) : recv(from); };
  Step step = part(0);
  for (int from = 1; from < collective.ranks; ++from) step.add(reduce(part(from)));
  return completed(std::move(step), collective);
}

/// Largest h with 2^h <= n.
constexpr int floor_log2(int n) noexcept {
  int h = 0;
  while (n >> (h + 1)) ++h;
  return h;
}
/// Least h with n <= 2^h.
constexpr int ceil_log2(int n) noexcept { return n <= 1 ? 0 : floor_log2(n - 1) + 1; }

}  // namespace khoro
