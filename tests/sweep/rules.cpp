// SPDX-License-Identifier: Apache-2.0
#include "sweep/rules.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sweep/axes.h"
#include "sweep/names.h"

namespace khoro::test {
namespace {

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

class Rules {
 public:
  Rules(Space& space, PlanBook& book) : space_(space), book_(book) {}

  void add_all() {
    add_for_collectives();
    add_for_reductions();
    add_for_ranks();
    add_for_gpus();
    add("the library has no plan for it",
        {Axis::collective, Axis::algorithm, Axis::ranks, Axis::root, Axis::reduction,
         Axis::determinism},
        [&book = book_](const Values& is) {
          return !has_plan({is[0], is[1], is[2], is[3], is[4], is[5]}, book);
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

  void add_for_collectives() {
    add("a root where there is none, or none where there is one", {Axis::collective, Axis::root},
        [](const Values& is) {
          const auto kind = kind_of(is[0]);
          return (kind && Collective{*kind, 2}.has_root()) == (is[1] == none);
        });
    add("an algorithm of another collective", {Axis::collective, Axis::algorithm},
        [](const Values& is) {
          const Algorithm* forced = algorithm(is[1]);
          return forced != nullptr && forced->collective != kind_of(is[0]);
        });
    add("messages are not in place", {Axis::collective, Axis::in_place},
        [](const Values& is) { return !kind_of(is[0]) && is[1] != placements[0]; });
  }

  void add_for_reductions() {
    add("a reduction where nothing is reduced, or none where something is",
        {Axis::collective, Axis::reduction},
        [](const Values& is) { return reduces(is[0]) == (is[1] == none); });
    add("the reduction does not apply to the type", {Axis::reduction, Axis::dtype},
        [](const Values& is) {
          return is[0] != none && !applies(row_named(all_reductions(), is[0])->reduction,
                                           row_named(dtypes(), is[1])->dtype);
        });
    add("exact or not, where nothing is reduced", {Axis::collective, Axis::determinism},
        [](const Values& is) { return !reduces(is[0]) && is[1] != determinisms[0]; });
    add("exact, by an algorithm that does not fold in rank order",
        {Axis::algorithm, Axis::determinism},
        [](const Values& is) { return !can_order(is[0]) && is[1] != determinisms[0]; });
    add("a function that does not commute, by an algorithm that does not fold in rank order",
        {Axis::algorithm, Axis::reduction}, [](const Values& is) {
          return !can_order(is[0]) && is[1] != none &&
                 !row_named(all_reductions(), is[1])->commutative;
        });
  }

  void add_for_ranks() {
    add("the rank that another name of a root means already", {Axis::ranks, Axis::root},
        [](const Values& is) {
          const RootName* named = row_named(roots, is[1]);
          if (named == nullptr) return false;
          const int ranks = std::stoi(is[0]);
          return std::any_of(
              std::begin(roots), std::begin(roots) + (named - roots),
              [&](const RootName& row) { return row.rank(ranks) == named->rank(ranks); });
        });
    add("no ranks to be fewer than, or to leave a rest", {Axis::ranks, Axis::count},
        [](const Values& is) {
          return is[0] == "1" &&
                 (is[1] == "fewer-than-ranks" || is[1] == "uneven" || is[1] == "granule-a-rank");
        });
    add("two threads of one process, and no other process", {Axis::ranks, Axis::living},
        [](const Values& is) { return is[1] == livings[2] && std::stoi(is[0]) <= 2; });
  }

  void add_for_gpus() {
    add("messages with tags between GPUs", {Axis::collective, Axis::memory},
        [](const Values& is) { return row_named(collectives(), is[0])->tagged && on_gpus(is[1]); });
    add("a reduction that is a function, on GPUs", {Axis::reduction, Axis::memory},
        [](const Values& is) {
          const ReductionName* row = row_named(all_reductions(), is[0]);
          return row != nullptr && row->reduction == Reduction::user && on_gpus(is[1]);
        });
  }

  static bool on_gpus(const std::string& memory) { return !row_named(memories, memory)->is_host(); }
  static std::optional<CollectiveKind> kind_of(const std::string& collective) {
    return row_named(collectives(), collective)->kind;
  }
  static bool reduces(const std::string& collective) {
    const auto kind = kind_of(collective);
    return kind && Collective{*kind, 2}.reduces();
  }
  static const Algorithm* algorithm(const std::string& name) {
    return row_named(forced_algorithms(), name)->forced;
  }
  /// The library chooses one that can.
  static bool can_order(const std::string& name) {
    const Algorithm* forced = algorithm(name);
    return forced == nullptr || forced->rank_order;
  }

  Space& space_;
  PlanBook& book_;
};

}  // namespace

Case smallest_case(const PlanNames& names) {
  Case what;
  const CollectiveName& collective = *row_named(collectives(), names.collective);
  what.kind = collective.kind;
  what.unequal = collective.unequal;
  what.tagged = collective.tagged;
  what.ranks = std::stoi(names.ranks);
  what.count = 1;
  if (const ReductionName* row = row_named(all_reductions(), names.reduction)) {
    what.reduction = row->reduction;
    what.late_factor = row->late_factor;
    what.commutative = row->commutative;
  }
  if (const RootName* row = row_named(roots, names.root)) what.root = row->rank(what.ranks);
  what.forced = row_named(forced_algorithms(), names.algorithm)->forced;
  what.exact = names.determinism == determinisms[1];
  return what;
}

void add_rules(Space& space, PlanBook& book) { Rules(space, book).add_all(); }

}  // namespace khoro::test
