// SPDX-License-Identifier: Apache-2.0
#include "sweep/space.h"

#include <algorithm>

namespace khoro::test {
namespace {

/// Of a missing pair.
constexpr int candidates = 12;

/// The values of an axis that break no rule with what is chosen; if there are none, a rule that
/// forbids one.
struct Legal {
  std::size_t axis = 0;
  std::vector<int> values;
  const Space::Rule* forbids = nullptr;
};

Legal legal_values(const Space& space, Point& point, std::size_t axis) {
  Legal legal{axis, {}, nullptr};
  const int count = static_cast<int>(space.axes[axis].values.size());
  for (point[axis] = 0; point[axis] < count; ++point[axis]) {
    const Space::Rule* rule = space.broken(point, axis);
    if (rule != nullptr)
      legal.forbids = rule;
    else
      legal.values.push_back(point[axis]);
  }
  point[axis] = unchosen;
  return legal;
}

/// Of the open axis with the fewest: a dead end shows at once. No axis: none is open.
Legal most_bound(const Space& space, Point& point, Random& random) {
  Legal best{space.axes.size(), {}, nullptr};
  const std::size_t start = random() % space.axes.size();
  for (std::size_t i = 0; i < space.axes.size(); ++i) {
    const std::size_t axis = (start + i) % space.axes.size();
    if (point[axis] != unchosen) continue;
    Legal legal = legal_values(space, point, axis);
    if (best.axis == space.axes.size() || legal.values.size() < best.values.size())
      best = std::move(legal);
  }
  return best;
}

const Space::Rule* broken_by_chosen(const Space& space, const Point& point) {
  for (std::size_t axis = 0; axis < point.size(); ++axis)
    if (point[axis] != unchosen)
      if (const Space::Rule* rule = space.broken(point, axis)) return rule;
  return nullptr;
}

const Space::Rule* choose_open(const Space& space, Point& point, Random& random) {
  Legal legal = most_bound(space, point, random);
  if (legal.axis == space.axes.size()) return nullptr;
  std::shuffle(legal.values.begin(), legal.values.end(), random);
  const Space::Rule* why = legal.forbids;
  for (int value : legal.values) {
    point[legal.axis] = value;
    why = choose_open(space, point, random);
    if (why == nullptr) return nullptr;
  }
  point[legal.axis] = unchosen;
  return why;
}

class Enumeration {
 public:
  Enumeration(const Space& space, const std::function<void(const Point&)>& visit,
              const std::function<void(const Space::Rule&, std::uint64_t)>& skip)
      : space_(space), visit_(visit), skip_(skip) {}

  void go(Point& point, std::size_t axis) {
    if (axis == point.size()) return visit_(point);
    if (point[axis] != unchosen) return step(point, axis);
    const int count = static_cast<int>(space_.axes[axis].values.size());
    for (point[axis] = 0; point[axis] < count; ++point[axis]) step(point, axis);
    point[axis] = unchosen;
  }

 private:
  void step(Point& point, std::size_t axis) {
    // Later axes that are fixed count as chosen already.
    const Space::Rule* rule = space_.broken(point, axis);
    if (rule == nullptr) return go(point, axis + 1);
    std::uint64_t points = 1;
    for (std::size_t later = axis + 1; later < point.size(); ++later)
      if (point[later] == unchosen) points *= space_.axes[later].values.size();
    skip_(*rule, points);
  }

  const Space& space_;
  const std::function<void(const Point&)>& visit_;
  const std::function<void(const Space::Rule&, std::uint64_t)>& skip_;
};

}  // namespace

const Space::Rule* Space::broken(const Point& point, std::size_t axis) const {
  for (const Rule& rule : rules) {
    if (std::find(rule.axes.begin(), rule.axes.end(), axis) == rule.axes.end()) continue;
    const bool chosen = std::all_of(rule.axes.begin(), rule.axes.end(),
                                    [&](std::size_t each) { return point[each] != unchosen; });
    if (chosen && rule.breaks(point)) return &rule;
  }
  return nullptr;
}

bool choose(const Space& space, Point& point, std::size_t axis, Random& random) {
  const Legal legal = legal_values(space, point, axis);
  if (legal.values.empty()) return false;
  point[axis] = legal.values[random() % legal.values.size()];
  return true;
}

const Space::Rule* complete(const Space& space, Point& point, Random& random) {
  if (const Space::Rule* rule = broken_by_chosen(space, point)) return rule;
  return choose_open(space, point, random);
}

PairSet::PairSet(const Space& space) {
  for (const Space::Axis& axis : space.axes) {
    first_.push_back(values_);
    values_ += axis.values.size();
  }
  held_.resize(values_ * values_);
}

template <class Visit>
void PairSet::for_each_of(const Point& point, Visit visit) const {
  for (std::size_t a = 0; a < point.size(); ++a)
    for (std::size_t b = a + 1; b < point.size(); ++b) visit(place({a, point[a], b, point[b]}));
}

void PairSet::add(const Point& point) {
  for_each_of(point, [&](std::size_t place) { held_[place] = true; });
}

int PairSet::fresh(const Point& point) const {
  int count = 0;
  for_each_of(point, [&](std::size_t place) { count += !held_[place]; });
  return count;
}

Cover cover(const Space& space, const Point& pinned, std::uint64_t seed) {
  Random random(seed);
  Cover cover;
  PairSet held(space);
  std::vector<Pair> wanted;
  for_each_pair(space, [&](const Pair& pair) { wanted.push_back(pair); });
  std::shuffle(wanted.begin(), wanted.end(), random);
  for (const Pair& pair : wanted) {
    if (held.holds(pair)) continue;
    const auto fits = [&](std::size_t axis, int value) {
      return pinned[axis] == unchosen || pinned[axis] == value;
    };
    if (!fits(pair.axis, pair.value) || !fits(pair.other_axis, pair.other_value)) continue;
    Point best;
    for (int i = 0; i < candidates; ++i) {
      Point point = pinned;
      point[pair.axis] = pair.value;
      point[pair.other_axis] = pair.other_value;
      if (const Space::Rule* rule = complete(space, point, random)) {
        cover.impossible.emplace_back(pair, rule);
        break;
      }
      if (best.empty() || held.fresh(point) > held.fresh(best)) best = point;
    }
    if (best.empty()) continue;
    held.add(best);
    cover.points.push_back(best);
  }
  return cover;
}

void for_each_point(const Space& space, const Point& fixed,
                    const std::function<void(const Point&)>& visit,
                    const std::function<void(const Space::Rule&, std::uint64_t)>& skip) {
  Point point = fixed;
  Enumeration(space, visit, skip).go(point, 0);
}

}  // namespace khoro::test
