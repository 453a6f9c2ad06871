// SPDX-License-Identifier: Apache-2.0
#include "sweep/axes.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

#include "sweep/names.h"
#include "sweep/rules.h"

namespace khoro::test {
namespace {

/// What is chosen when a communicator is made, beside its ranks.
constexpr Axis made_with[] = {Axis::algorithm, Axis::determinism, Axis::memory};

const std::string& value(const Space& space, const Point& point, Axis axis) {
  return space.axes[at(axis)].values[static_cast<std::size_t>(point[at(axis)])];
}

std::size_t largest_of_one_tile(const Case& what, PlanBook& book) {
  if (!what.kind) return book.slot_bytes() / what.element();
  const Plan& plan = book.find(what).plan;
  std::size_t fits = 1;
  for (std::size_t step = std::size_t{1} << 24; step > 0; step /= 2)
    if (grid_of(plan, what.arithmetic(), fits + step, book.slot_bytes()).tiles() == 1) fits += step;
  return fits;
}

}  // namespace

Space make_space(PlanBook& book) {
  Space space;
  std::vector<std::string> ranks;
  for (int count = 1; count <= most_ranks; ++count) ranks.push_back(std::to_string(count));
  const auto with_none = [](std::vector<std::string> names) {
    names.emplace_back(none);
    return names;
  };
  space.axes = {{"ranks", ranks},
                {"algorithm", names_of(forced_algorithms())},
                {"determinism", {std::begin(determinisms), std::end(determinisms)}},
                {"memory", names_of(memories), weights_of(memories)},
                {"living", {std::begin(livings), std::end(livings)}},
                {"collective", names_of(collectives())},
                {"root", with_none(names_of(roots))},
                {"reduction", with_none(names_of(all_reductions()))},
                {"dtype", names_of(dtypes())},
                {"count", names_of(counts), weights_of(counts)},
                {"in_place", {std::begin(placements), std::end(placements)}},
                {"alignment", names_of(alignments)},
                {"way", {std::begin(way_names), std::end(way_names)}}};
  add_rules(space, book);
  return space;
}

Point communicator_of(const Space& space, const Point& point) {
  Point communicator = space.open_point();
  communicator[at(Axis::ranks)] = point[at(Axis::ranks)];
  for (Axis axis : made_with) communicator[at(axis)] = point[at(axis)];
  return communicator;
}

std::vector<Point> communicators_of(const Space& space, int ranks) {
  std::vector<Point> points{space.open_point()};
  points[0][at(Axis::ranks)] = ranks - 1;
  for (Axis axis : made_with) {
    const int values = static_cast<int>(space.axes[at(axis)].values.size());
    std::vector<Point> longer;
    for (Point& point : points)
      for (point[at(axis)] = 0; point[at(axis)] < values; ++point[at(axis)])
        longer.push_back(point);
    points = std::move(longer);
  }
  return points;
}

std::string settings_of(const Space& space, const Point& communicator) {
  Case what;
  what.forced = row_named(forced_algorithms(), value(space, communicator, Axis::algorithm))->forced;
  what.exact = value(space, communicator, Axis::determinism) == determinisms[1];
  const MemoryName& memory = *row_named(memories, value(space, communicator, Axis::memory));
  return settings_of(what, std::string(sweep_settings) + std::string(memory.settings));
}

Case case_of(const Space& space, const Point& point, std::uint64_t seed, PlanBook& book) {
  const auto is = [&](Axis axis) -> const std::string& { return value(space, point, axis); };
  Case what = smallest_case({is(Axis::collective), is(Axis::algorithm), is(Axis::ranks),
                             is(Axis::root), is(Axis::reduction), is(Axis::determinism)});
  what.dtype = row_named(dtypes(), is(Axis::dtype))->dtype;
  what.in_place = is(Axis::in_place) == placements[1];
  what.alignment = alignments[point[at(Axis::alignment)]];
  what.way = static_cast<Way>(point[at(Axis::way)]);
  what.seed = seed;
  const Sizes sizes{static_cast<std::size_t>(what.ranks),
                    std::max<std::size_t>(128 / what.element(), 1),
                    largest_of_one_tile(what, book)};
  what.count = counts[point[at(Axis::count)]].count(sizes);
  return what;
}

std::string to_line(const Space& space, const Draw& draw) {
  std::string line;
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis)
    line += space.axes[axis].name + "=" +
            space.axes[axis].values[static_cast<std::size_t>(draw.point[axis])] + " ";
  return line + "seed=" + std::to_string(draw.seed);
}

bool choose_value(const Space& space, std::string_view assignment, Point& point) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) return false;
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    if (space.axes[axis].name != assignment.substr(0, equals)) continue;
    const std::vector<std::string>& values = space.axes[axis].values;
    const auto found = std::find(values.begin(), values.end(), assignment.substr(equals + 1));
    point[axis] = found == values.end() ? unchosen : static_cast<int>(found - values.begin());
    return point[axis] != unchosen;
  }
  return false;
}

std::optional<Draw> parse_line(const Space& space, std::string_view line) {
  Draw draw{space.open_point(), 0};
  bool seeded = false;
  while (!line.empty()) {
    const auto blank = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, blank);
    line.remove_prefix(std::min(blank + 1, line.size()));
    if (word.starts_with("seed=")) {
      const auto [end, fault] =
          std::from_chars(word.data() + 5, word.data() + word.size(), draw.seed);
      seeded = fault == std::errc() && end == word.data() + word.size();
    } else if (!choose_value(space, word, draw.point)) {
      return std::nullopt;
    }
  }
  if (!seeded) return std::nullopt;
  for (std::size_t axis = 0; axis < draw.point.size(); ++axis)
    if (draw.point[axis] == unchosen) return std::nullopt;
  for (std::size_t axis = 0; axis < draw.point.size(); ++axis)
    if (space.broken(draw.point, axis) != nullptr) return std::nullopt;
  return draw;
}

}  // namespace khoro::test
