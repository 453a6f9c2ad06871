// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace khoro::test {

/// A value of each axis, as its number; `unchosen` where none is chosen yet.
using Point = std::vector<int>;
inline constexpr int unchosen = -1;

/// Axes with their values, and rules that say which points cannot be.
struct Space {
  struct Axis {
    std::string name;
    std::vector<std::string> values;
    /// How often each value is drawn beside the others; empty: as often as what is chosen allows.
    std::vector<int> weights{};
  };
  struct Rule {
    std::string why;
    /// It looks at these alone, and is asked only when all of them are chosen.
    std::vector<std::size_t> axes;
    std::function<bool(const Point&)> breaks;
  };

  std::vector<Axis> axes;
  std::vector<Rule> rules;

  Point open_point() const { return Point(axes.size(), unchosen); }
  /// A rule that a point breaks, of those that look at this axis; null if there is none.
  const Rule* broken(const Point& point, std::size_t axis) const;
};

using Random = std::mt19937_64;

/// Chooses a value of an open axis, at random, that breaks no rule with what is chosen. False:
/// there is none.
bool choose(const Space& space, Point& point, std::size_t axis, Random& random);

/// Chooses what is open, at random, so that no rule is broken. If that cannot be, returns the rule
/// that showed it, and leaves the point as it was; else null.
const Space::Rule* complete(const Space& space, Point& point, Random& random);

/// Values of two axes.
struct Pair {
  std::size_t axis = 0;
  int value = 0;
  std::size_t other_axis = 0;  // the greater one
  int other_value = 0;
};

template <class Visit>
void for_each_pair(const Space& space, Visit visit) {
  for (std::size_t a = 0; a < space.axes.size(); ++a)
    for (std::size_t b = a + 1; b < space.axes.size(); ++b)
      for (int x = 0; x < static_cast<int>(space.axes[a].values.size()); ++x)
        for (int y = 0; y < static_cast<int>(space.axes[b].values.size()); ++y)
          visit(Pair{a, x, b, y});
}

/// Which pairs occur in the points that it was shown.
class PairSet {
 public:
  explicit PairSet(const Space& space);

  void add(const Point& point);
  bool holds(const Pair& pair) const { return held_[place(pair)]; }
  /// Pairs of the point that are not held yet.
  int fresh(const Point& point) const;

 private:
  std::size_t place(const Pair& pair) const {
    return (first_[pair.axis] + static_cast<std::size_t>(pair.value)) * values_ +
           first_[pair.other_axis] + static_cast<std::size_t>(pair.other_value);
  }
  template <class Visit>
  void for_each_of(const Point& point, Visit visit) const;

  std::vector<std::size_t> first_;  // number of an axis' first value among all values
  std::size_t values_ = 0;
  std::vector<bool> held_;
};

/// Points in which every pair occurs that can occur.
struct Cover {
  std::vector<Point> points;
  /// The others, each with the rule that forbids it.
  std::vector<std::pair<Pair, const Space::Rule*>> impossible;
};
/// Points that `pinned` fits alone. Greedy: each pair that is still missing gets the best of a few
/// random points that hold it.
Cover cover(const Space& space, const Point& pinned, std::uint64_t seed);

/// Visits every point that agrees with `fixed` and breaks no rule. Of those that do, tells
/// skip(rule, how many points), all that share what breaks it at once.
void for_each_point(const Space& space, const Point& fixed,
                    const std::function<void(const Point&)>& visit,
                    const std::function<void(const Space::Rule&, std::uint64_t)>& skip);

}  // namespace khoro::test
