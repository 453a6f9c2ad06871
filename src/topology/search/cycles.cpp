// SPDX-License-Identifier: Apache-2.0
#include "topology/search/cycles.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "topology/index.h"

namespace khoro {
namespace {

constexpr int most_improved = 128;  // points
constexpr double gain_worth = 1e-12;
constexpr double infinite = std::numeric_limits<double>::infinity();

Cycle nearest_neighbours(int start, const Costs& costs) {
  Cycle cycle{start};
  std::vector<bool> used(at(costs.points));
  used[at(start)] = true;
  for (int i = 1; i < costs.points; ++i) {
    int best = -1;
    for (int next = 0; next < costs.points; ++next)
      if (!used[at(next)] &&
          (best < 0 || costs(cycle.back(), next) < costs(cycle.back(), best) - gain_worth))
        best = next;
    used[at(best)] = true;
    cycle.push_back(best);
  }
  return cycle;
}

/// Moves one to three points that follow each other to elsewhere, as they are or reversed, if that
/// is cheaper.
bool move_part(Cycle& cycle, const Costs& costs) {
  const int n = costs.points;
  const auto point = [&](int i) { return cycle[at(i % n)]; };
  for (int length = 1; length <= std::min(3, n - 2); ++length)
    for (int first = 0; first < n; ++first) {
      const int last = first + length - 1;
      const double without = costs(point(first + n - 1), point(last + 1)) -
                             costs(point(first + n - 1), point(first)) -
                             costs(point(last), point(last + 1));
      double turned = 0;  // of the way through the part, backwards in place of forwards
      for (int i = first; i < last; ++i)
        turned += costs(point(i + 1), point(i)) - costs(point(i), point(i + 1));
      for (int after = last + 1; after < first + n - 1; ++after)
        for (const bool backwards : {false, true}) {
          const int head = backwards ? point(last) : point(first);
          const int tail = backwards ? point(first) : point(last);
          const double change = without + (backwards ? turned : 0) + costs(point(after), head) +
                                costs(tail, point(after + 1)) -
                                costs(point(after), point(after + 1));
          if (change > -1e-9) continue;
          Cycle moved;
          for (int i = last + 1; i <= after; ++i) moved.push_back(point(i));
          for (int i = 0; i < length; ++i) moved.push_back(point(backwards ? last - i : first + i));
          for (int i = after + 1; i < first + n; ++i) moved.push_back(point(i));
          cycle = std::move(moved);
          return true;
        }
    }
  return false;
}

/// Turns a part of the cycle around if that is cheaper.
bool reverse_part(Cycle& cycle, const Costs& costs) {
  const int n = costs.points;
  for (int first = 0; first < n - 1; ++first) {
    const int before = cycle[at((first + n - 1) % n)];
    double turned = 0;
    for (int last = first + 1; last < n - (first == 0); ++last) {
      const int behind = cycle[at((last + 1) % n)];
      const int head = cycle[at(first)], tail = cycle[at(last)];
      turned += costs(tail, cycle[at(last - 1)]) - costs(cycle[at(last - 1)], tail);
      const double change = turned + costs(before, tail) + costs(head, behind) -
                            costs(before, head) - costs(tail, behind);
      if (change > -1e-9) continue;
      std::reverse(cycle.begin() + first, cycle.begin() + last + 1);
      return true;
    }
  }
  return false;
}

void begin_with_zero(Cycle& cycle) {
  std::rotate(cycle.begin(), std::find(cycle.begin(), cycle.end(), 0), cycle.end());
}

/// Cheapest first, of equal ones the lexicographically first; none twice.
std::vector<Cycle> sorted(std::vector<Cycle> cycles, const Costs& costs) {
  std::sort(cycles.begin(), cycles.end());
  cycles.erase(std::unique(cycles.begin(), cycles.end()), cycles.end());
  std::stable_sort(cycles.begin(), cycles.end(), [&](const Cycle& a, const Cycle& b) {
    return cost_of(a, costs) < cost_of(b, costs);
  });
  return cycles;
}

/// Cheapest ways from point 0 through a set of other points, by set and last point.
class Ways {
 public:
  explicit Ways(const Costs& costs)
      : costs_(costs),
        others_(at(costs.points - 1)),
        sets_(std::size_t{1} << others_),
        cost_(sets_ * others_, infinite),
        before_(sets_ * others_) {
    for (std::size_t i = 0; i < others_; ++i)
      cost_[(std::size_t{1} << i) * others_ + i] = costs(0, static_cast<int>(i) + 1);
    for (std::size_t set = 1; set < sets_; ++set)
      for (std::size_t last = 0; last < others_; ++last)
        if (cost_[set * others_ + last] < infinite) extend(set, last);
  }

  Cycle through_all(std::size_t last) const {
    Cycle cycle;
    for (std::size_t set = sets_ - 1; set;) {
      cycle.push_back(static_cast<int>(last) + 1);
      const std::size_t rest = set & ~(std::size_t{1} << last);
      last = before_[set * others_ + last];
      set = rest;
    }
    cycle.push_back(0);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

 private:
  void extend(std::size_t set, std::size_t last) {
    const double so_far = cost_[set * others_ + last];
    const double* row = &costs_.values[(last + 1) * (others_ + 1) + 1];
    for (std::size_t next = 0; next < others_; ++next) {
      if (set >> next & 1) continue;
      const std::size_t to = (set | std::size_t{1} << next) * others_ + next;
      if (so_far + row[next] >= cost_[to]) continue;
      cost_[to] = so_far + row[next];
      before_[to] = static_cast<std::uint8_t>(last);
    }
  }

  const Costs& costs_;
  std::size_t others_;
  std::size_t sets_;
  std::vector<double> cost_;
  std::vector<std::uint8_t> before_;
};

}  // namespace

double cost_of(const Cycle& cycle, const Costs& costs) {
  double sum = costs(cycle.back(), cycle.front());
  for (std::size_t i = 1; i < cycle.size(); ++i) sum += costs(cycle[i - 1], cycle[i]);
  return sum;
}

std::vector<Cycle> cheap_cycles(const Costs& costs, int starts) {
  std::vector<Cycle> cycles;
  // Beyond some points more starts than these cost more than they find, and improving too much.
  const bool improves = costs.points <= most_improved;
  const int step =
      improves ? std::max(1, costs.points / (costs.points > 72 ? std::min(4, starts) : starts))
               : costs.points;
  for (int start = 0; start < costs.points; start += step) {
    Cycle cycle = nearest_neighbours(start, costs);
    while (improves && (move_part(cycle, costs) || reverse_part(cycle, costs))) continue;
    begin_with_zero(cycle);
    cycles.push_back(std::move(cycle));
  }
  return sorted(std::move(cycles), costs);
}

std::vector<Cycle> cheapest_cycles(const Costs& costs) {
  const Ways ways(costs);
  std::vector<Cycle> cycles;
  for (int last = 1; last < costs.points; ++last) cycles.push_back(ways.through_all(at(last - 1)));
  return sorted(std::move(cycles), costs);
}

}  // namespace khoro
