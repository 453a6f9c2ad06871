// SPDX-License-Identifier: Apache-2.0
#include "topology/search/hamiltonian.h"

#include <cstdint>
#include <utility>

#include "topology/index.h"

namespace khoro {
namespace {

constexpr int most_points = 34;

/// Where each point leads.
using Successors = std::vector<int>;

/// For an odd number: a zigzag through all but the last point, whose steps are all different, and
/// the same turned by one point after another.
std::vector<Cycle> turned_zigzags(int points) {
  const int turns = points - 1;
  std::vector<Cycle> cycles;
  for (int turn = 0; turn < turns; ++turn) {
    Cycle cycle{points - 1};
    for (int i = 0; i < turns; ++i)
      cycle.push_back(((i % 2 ? turns - (i + 1) / 2 : i / 2) + turn) % turns);
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

int count_cycles(const Successors& next) {
  std::vector<bool> seen(next.size());
  int count = 0;
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (seen[i]) continue;
    ++count;
    for (std::size_t j = i; !seen[j]; j = at(next[j])) seen[j] = true;
  }
  return count;
}

/// The same numbers on every machine.
class Sequence {
 public:
  int below(int limit) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_ = 1;
};

/// For an even number no turned cycle serves. Permutations that turn by 1, 2, ... go from each
/// point to each other one exactly once. Parts of them are swapped, in ways that keep that, until
/// each is a single cycle: a walk that never adds cycles.
class Mending {
 public:
  explicit Mending(int points) : points_(points) {
    for (int turn = 1; turn < points; ++turn) {
      turns_.emplace_back();
      for (int i = 0; i < points; ++i) turns_.back().push_back((i + turn) % points);
      counts_.push_back(count_cycles(turns_.back()));
      excess_ += counts_.back() - 1;
    }
  }

  std::vector<Cycle> cycles() {
    // Many times what it takes for any even number from 8 to `most_points`.
    for (int step = 0; excess_ > 0 && step < 500'000; ++step)
      sequence_.below(2) ? swap_between_two() : swap_in_many();
    std::vector<Cycle> cycles;
    for (const Successors& turn : turns_) {
      Cycle cycle{0};
      while (turn[at(cycle.back())] != 0) cycle.push_back(turn[at(cycle.back())]);
      cycles.push_back(std::move(cycle));
    }
    return excess_ > 0 ? std::vector<Cycle>() : cycles;
  }

 private:
  /// Two permutations swap where the fewest points lead to that must go together.
  void swap_between_two() {
    Successors& one = turns_[at(sequence_.below(points_ - 1))];
    Successors& other = turns_[at(sequence_.below(points_ - 1))];
    const int start = sequence_.below(points_);
    if (&one == &other) return;
    Successors leads_to(at(points_));
    for (int i = 0; i < points_; ++i) leads_to[at(one[at(i)])] = i;
    std::vector<int> set;
    int i = start;
    do set.push_back(i);
    while ((i = leads_to[at(other[at(i)])]) != start);
    const auto swap = [&] {
      for (int point : set) std::swap(one[at(point)], other[at(point)]);
    };
    swap();
    const auto first = static_cast<int>(&one - turns_.data());
    const auto second = static_cast<int>(&other - turns_.data());
    if (!accept({first, second})) swap();
  }

  /// The fewest permutations that must go together swap where two points lead to: the only way to
  /// an odd number of cycles from an even one.
  void swap_in_many() {
    const int a = sequence_.below(points_), b = sequence_.below(points_);
    const int start = sequence_.below(points_ - 1);
    if (a == b) return;
    std::vector<int> turn_that_leads_to(at(points_), -1);  // from a
    for (int i = 0; i < points_ - 1; ++i) turn_that_leads_to[at(turns_[at(i)][at(a)])] = i;
    std::vector<int> set;
    int i = start;
    do set.push_back(i);
    while ((i = turn_that_leads_to[at(turns_[at(i)][at(b)])]) != start && i >= 0);
    if (i < 0) return;  // would lead a point to itself
    const auto swap = [&] {
      for (int turn : set) std::swap(turns_[at(turn)][at(a)], turns_[at(turn)][at(b)]);
    };
    swap();
    if (!accept(set)) swap();
  }

  /// Keeps changed permutations if they have no more cycles than before, and the number of cycles
  /// too many is even or becomes so: while it is odd most swaps cannot lead to the end.
  bool accept(const std::vector<int>& changed) {
    int change = 0;
    std::vector<int> counts;
    for (int turn : changed) {
      counts.push_back(count_cycles(turns_[at(turn)]));
      change += counts.back() - counts_[at(turn)];
    }
    const bool mends_parity = excess_ % 2 && change % 2;
    if (!mends_parity && (change > 0 || change % 2)) return false;
    for (std::size_t i = 0; i < changed.size(); ++i) counts_[at(changed[i])] = counts[i];
    excess_ += change;
    return true;
  }

  int points_;
  std::vector<Successors> turns_;
  std::vector<int> counts_;  // of cycles, by permutation
  int excess_ = 0;           // cycles beyond one of each
  Sequence sequence_;
};

}  // namespace

std::vector<Cycle> hamiltonian_cycles(int points) {
  if (points < 2 || points == 4 || points == 6) return {};
  if (points == 2) return {{0, 1}};
  if (points > most_points) return {};
  return points % 2 ? turned_zigzags(points) : Mending(points).cycles();
}

}  // namespace khoro
