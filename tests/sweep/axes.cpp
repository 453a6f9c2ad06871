// SPDX-License-Identifier: Apache-2.0
#include "sweep/axes.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <iterator>
#include <memory>
#include <vector>

#include "base/error.h"

namespace khoro::test {
namespace {

constexpr std::string_view none = "none";
constexpr std::string_view by_choice = "default";
constexpr std::string_view messages = "sendrecv";
constexpr std::string_view livings[] = {"processes", "threads", "mixed"};
constexpr std::string_view placements[] = {"no", "yes"};

struct RootRow {
  std::string_view name;
  int (*rank)(int ranks);
};
constexpr RootRow roots[] = {{"first", [](int) { return 0; }},
                             {"middle", [](int ranks) { return ranks / 2; }},
                             {"last", [](int ranks) { return ranks - 1; }}};

/// What the interesting counts are made of.
struct Sizes {
  std::size_t ranks = 1;
  std::size_t granule = 1;  // elements that make the 128 bytes at which chunks are cut
  std::size_t tile = 1;     // the most elements that go in one tile
};
struct CountRow {
  std::string_view name;
  std::size_t (*count)(const Sizes&);
  int weight;
};
constexpr CountRow counts[] = {
    {"0", [](const Sizes&) -> std::size_t { return 0; }, 8},
    {"1", [](const Sizes&) -> std::size_t { return 1; }, 8},
    {"fewer-than-ranks", [](const Sizes& of) { return of.ranks - 1; }, 8},
    {"uneven", [](const Sizes& of) { return 5 * of.ranks + 1; }, 8},
    {"below-granule", [](const Sizes& of) { return of.granule - 1; }, 8},
    {"granule", [](const Sizes& of) { return of.granule; }, 8},
    {"above-granule", [](const Sizes& of) { return of.granule + 1; }, 8},
    {"granule-a-rank", [](const Sizes& of) { return of.granule * of.ranks + 1; }, 8},
    {"tile", [](const Sizes& of) { return of.tile; }, 1},
    {"above-tile", [](const Sizes& of) { return of.tile + 1; }, 1},
    {"tiles", [](const Sizes& of) { return 2 * of.tile + of.granule + 1; }, 1},
    {"large", [](const Sizes&) -> std::size_t { return 30'011; }, 1},
};

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

/// A collective as the axis names it: with a v at its end if its blocks are unequal.
std::string name_of(CollectiveKind kind, bool unequal) {
  return std::string(name(kind)) + (unequal ? "v" : "");
}

/// What a name of the axis means; the default for messages.
struct Named {
  std::optional<CollectiveKind> kind;
  bool unequal = false;

  explicit Named(const std::string& name) : kind(collective_named(name)) {
    if (kind || !name.ends_with('v')) return;
    kind = collective_named(std::string_view(name).substr(0, name.size() - 1));
    unequal = kind.has_value();
  }
};

/// Those that have algorithms, in the order of the registry.
std::vector<std::string> collectives() {
  std::vector<std::string> names;
  for (bool unequal : {false, true})
    for (const Algorithm* row : algorithms()) {
      const std::string each = name_of(row->collective, unequal);
      const bool has_blocks = Collective{row->collective, 2}.blocks() == 2;
      if (row->collective != CollectiveKind::barrier && (has_blocks || !unequal) &&
          std::find(names.begin(), names.end(), each) == names.end())
        names.push_back(each);
    }
  names.emplace_back(messages);
  return names;
}

std::vector<std::string> forced_names() {
  std::vector<std::string> names{std::string(by_choice)};
  for (const Algorithm* row : algorithms())
    if (row->collective != CollectiveKind::barrier)
      names.push_back(std::string(name(row->collective)) + ":" + std::string(row->name));
  return names;
}

const std::string& value(const Space& space, const Point& point, Axis axis) {
  return space.axes[at(axis)].values[static_cast<std::size_t>(point[at(axis)])];
}

template <class Rows>
auto* row_named(const Rows& rows, std::string_view name) {
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [name](const auto& each) { return each.name == name; });
  return row == std::end(rows) ? nullptr : &*row;
}

const Algorithm* algorithm_named(const std::string& name) {
  const auto colon = name.find(':');
  if (colon == std::string::npos) return nullptr;
  return find_algorithm(*collective_named(name.substr(0, colon)), name.substr(colon + 1));
}

/// What decides on the plan of a call, by name.
struct PlanNames {
  std::string collective, algorithm, ranks, root, reduction;
};

/// A call of one element.
Case smallest_case(const PlanNames& names) {
  Case what;
  what.kind = Named(names.collective).kind;
  what.unequal = Named(names.collective).unequal;
  what.ranks = std::stoi(names.ranks);
  what.count = 1;
  if (const auto* row = row_named(reductions(), names.reduction)) what.reduction = row->reduction;
  if (const auto* row = row_named(roots, names.root)) what.root = row->rank(what.ranks);
  what.forced = algorithm_named(names.algorithm);
  return what;
}

bool has_plan(const PlanNames& names, PlanBook& book) {
  const Case what = smallest_case(names);
  if (!what.kind) return true;
  if (what.forced && !can_do(*what.forced, what.collective())) return false;
  try {
    return book.find(what).signatures != nullptr;
  } catch (const Error&) {
    return false;
  }
}

std::size_t largest_of_one_tile(const Case& what, PlanBook& book) {
  if (!what.kind) return book.slot_bytes() / what.element();
  const Plan& plan = book.find(what).plan;
  std::size_t fits = 1;
  for (std::size_t step = std::size_t{1} << 24; step > 0; step /= 2)
    if (grid_of(plan, what.dtype, what.reduction, fits + step, book.slot_bytes()).tiles() == 1)
      fits += step;
  return fits;
}

class Rules {
 public:
  Rules(Space& space, PlanBook& book) : space_(space), book_(book) {}

  void add_all() {
    add_for_collectives();
    add_for_ranks();
    add("the library has no plan for it",
        {Axis::collective, Axis::algorithm, Axis::ranks, Axis::root, Axis::reduction},
        [&book = book_](const Values& is) {
          return !has_plan({is[0], is[1], is[2], is[3], is[4]}, book);
        });
  }

 private:
  using Values = std::vector<std::string>;  // of the axes of a rule

  void add(std::string why, std::vector<Axis> axes, std::function<bool(const Values&)> breaks) {
    std::vector<std::size_t> places;
    for (Axis axis : axes) places.push_back(at(axis));
    // Asked once for each combination of values, and remembered: searches ask millions of times,
    // from several threads.
    std::size_t combinations = 1;
    for (std::size_t place : places) combinations *= space_.axes[place].values.size();
    enum Answer : char { unknown, no, yes };
    auto known = std::make_shared<std::vector<std::atomic<Answer>>>(combinations);
    auto asks = [axes = space_.axes, places, known, breaks](const Point& point) {
      std::size_t number = 0;
      for (std::size_t place : places)
        number = number * axes[place].values.size() + static_cast<std::size_t>(point[place]);
      std::atomic<Answer>& answer = (*known)[number];
      if (answer == unknown) {
        Values values;
        for (std::size_t place : places)
          values.push_back(axes[place].values[static_cast<std::size_t>(point[place])]);
        answer = breaks(values) ? yes : no;
      }
      return answer == yes;
    };
    space_.rules.push_back({std::move(why), places, asks});
  }

  static Collective collective(const std::string& name) {
    return Collective{Named(name).kind.value_or(CollectiveKind::allgather), 2};
  }

  void add_for_collectives() {
    add("a reduction where nothing is reduced, or none where something is",
        {Axis::collective, Axis::reduction},
        [](const Values& is) { return collective(is[0]).reduces() == (is[1] == none); });
    add("a root where there is none, or none where there is one", {Axis::collective, Axis::root},
        [](const Values& is) { return collective(is[0]).has_root() == (is[1] == none); });
    add("an algorithm of another collective", {Axis::collective, Axis::algorithm},
        [](const Values& is) {
          const Algorithm* forced = algorithm_named(is[1]);
          return forced != nullptr && forced->collective != Named(is[0]).kind;
        });
    add("messages are not in place", {Axis::collective, Axis::in_place},
        [](const Values& is) { return is[0] == messages && is[1] != placements[0]; });
    add("the reduction does not apply to the type", {Axis::reduction, Axis::dtype},
        [](const Values& is) { return is[0] != none && !applies_to(is[0], is[1]); });
  }

  void add_for_ranks() {
    add("the rank that another name of a root means already", {Axis::ranks, Axis::root},
        [](const Values& is) {
          const RootRow* named = row_named(roots, is[1]);
          if (named == nullptr) return false;
          const int ranks = std::stoi(is[0]);
          return std::any_of(
              std::begin(roots), std::begin(roots) + (named - roots),
              [&](const RootRow& row) { return row.rank(ranks) == named->rank(ranks); });
        });
    add("no ranks to be fewer than, or to leave a rest", {Axis::ranks, Axis::count},
        [](const Values& is) {
          return is[0] == "1" &&
                 (is[1] == "fewer-than-ranks" || is[1] == "uneven" || is[1] == "granule-a-rank");
        });
    add("two threads of one process, and no other process", {Axis::ranks, Axis::living},
        [](const Values& is) { return is[1] == livings[2] && std::stoi(is[0]) <= 2; });
  }

  static bool applies_to(const std::string& reduction, const std::string& dtype) {
    return applies(row_named(reductions(), reduction)->reduction,
                   row_named(dtypes(), dtype)->dtype);
  }

  Space& space_;
  PlanBook& book_;
};

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
                {"algorithm", forced_names()},
                {"living", {std::begin(livings), std::end(livings)}},
                {"collective", collectives()},
                {"root", with_none(names_of(roots))},
                {"reduction", with_none(names_of(reductions()))},
                {"dtype", names_of(dtypes())},
                {"count", names_of(counts)},
                {"in_place", {std::begin(placements), std::end(placements)}},
                {"alignment", names_of(alignments)},
                {"way", {std::begin(way_names), std::end(way_names)}}};
  Rules(space, book).add_all();
  return space;
}

const Algorithm* forced_algorithm(const Space& space, int value) {
  return algorithm_named(space.axes[at(Axis::algorithm)].values[static_cast<std::size_t>(value)]);
}

Case case_of(const Space& space, const Point& point, std::uint64_t seed, PlanBook& book) {
  const auto is = [&](Axis axis) -> const std::string& { return value(space, point, axis); };
  Case what = smallest_case({is(Axis::collective), is(Axis::algorithm), is(Axis::ranks),
                             is(Axis::root), is(Axis::reduction)});
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

int weight_of_count(int value) { return counts[value].weight; }

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
    point[axis] = found == values.end() ? open : static_cast<int>(found - values.begin());
    return point[axis] != open;
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
    if (draw.point[axis] == open) return std::nullopt;
  for (std::size_t axis = 0; axis < draw.point.size(); ++axis)
    if (space.broken(draw.point, axis) != nullptr) return std::nullopt;
  return draw;
}

}  // namespace khoro::test
