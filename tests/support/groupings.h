// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "topology/topology.h"

namespace khoro::test {

/// The machine of each rank.
using Grouping = std::vector<int>;

/// "0,0,1"
inline std::string text(const Grouping& machines) {
  std::string text;
  for (int machine : machines) text += (text.empty() ? "" : ",") + std::to_string(machine);
  return text;
}

inline bool is_one_machine(const Grouping& machines) {
  return std::adjacent_find(machines.begin(), machines.end(), std::not_equal_to<>()) ==
         machines.end();
}

/// Machines of so many ranks, which follow one another.
inline Grouping blocks_of(int ranks, int size) {
  Grouping machines;
  for (int rank = 0; rank < ranks; ++rank) machines.push_back(rank / size);
  return machines;
}

/// The ranks dealt out to so many machines in turn.
inline Grouping dealt_to(int ranks, int count) {
  Grouping machines;
  for (int rank = 0; rank < ranks; ++rank) machines.push_back(rank % count);
  return machines;
}

/// Machines of 1, 2, 3 ... ranks, the last of what is left.
inline Grouping growing(int ranks) {
  Grouping machines;
  for (int size = 1, machine = 0; static_cast<int>(machines.size()) < ranks; ++size, ++machine)
    machines.insert(machines.end(), static_cast<std::size_t>(size), machine);
  machines.resize(static_cast<std::size_t>(ranks));
  return machines;
}

/// Any machine for each rank.
inline Grouping random_grouping(int ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t most = 1 + random() % static_cast<std::uint64_t>(ranks);
  Grouping machines;
  for (int rank = 0; rank < ranks; ++rank) machines.push_back(static_cast<int>(random() % most));
  return machines;
}

/// All ranks on one machine, each on its own, and machines of equal and unequal numbers of ranks
/// that follow one another or not; each once.
inline std::vector<Grouping> groupings_of(int ranks) {
  Grouping first_alone(static_cast<std::size_t>(ranks), 1);
  first_alone.front() = 0;
  Grouping last_alone(static_cast<std::size_t>(ranks), 0);
  last_alone.back() = 1;
  std::vector<Grouping> all = {
      blocks_of(ranks, ranks), blocks_of(ranks, 1),    blocks_of(ranks, 2),
      blocks_of(ranks, 3),     blocks_of(ranks, 8),    blocks_of(ranks, (ranks + 1) / 2),
      dealt_to(ranks, 2),      dealt_to(ranks, 3),     dealt_to(ranks, 5),
      growing(ranks),          std::move(first_alone), std::move(last_alone)};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Where ranks may be, for an algorithm: anywhere, if that makes a difference to it.
inline std::vector<Grouping> groupings_for(const Algorithm& algorithm, int ranks) {
  if (algorithm.by_machine) return groupings_of(ranks);
  return {Grouping(static_cast<std::size_t>(ranks), 0)};
}

/// Where they are in tests that take long: on machines of unequal numbers of ranks, that follow one
/// another if there are even many, and else on two between which they change.
inline Grouping one_grouping_for(const Algorithm& algorithm, int ranks) {
  if (!algorithm.by_machine) return Grouping(static_cast<std::size_t>(ranks), 0);
  return ranks % 2 == 0 ? growing(ranks) : dealt_to(ranks, 2);
}

}  // namespace khoro::test
