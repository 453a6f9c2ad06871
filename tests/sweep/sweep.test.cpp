// SPDX-License-Identifier: Apache-2.0
// What a sweep rests on: that it leaves nothing out, and that it sees what goes wrong.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/expectation.h"
#include "support/guarded_buffers.h"
#include "sweep/axes.h"
#include "sweep/space.h"

using namespace khoro;
using namespace khoro::test;

namespace {

Settings settings_of_sweep() {
  Settings settings;
  settings.choose(sweep_settings);
  return settings;
}

/// Three axes of which the third keeps values of the others apart: 0 of the first goes with 0 of
/// the third alone, and 1 of the second with 1 of the third alone.
Space small_space() {
  Space space;
  space.axes = {{"a", {"0", "1", "2"}}, {"b", {"0", "1", "2"}}, {"c", {"0", "1"}}};
  space.rules.push_back(
      {"a needs c", {0, 2}, [](const Point& is) { return is[0] == 0 && is[2] != 0; }});
  space.rules.push_back(
      {"b needs c", {1, 2}, [](const Point& is) { return is[1] == 1 && is[2] != 1; }});
  return space;
}

bool same(const Pair& a, const Pair& b) {
  return a.axis == b.axis && a.value == b.value && a.other_axis == b.other_axis &&
         a.other_value == b.other_value;
}

bool is_impossible(const Cover& cover, const Pair& pair) {
  return std::any_of(cover.impossible.begin(), cover.impossible.end(),
                     [&](const auto& each) { return same(each.first, pair); });
}

/// Pairs that neither occur nor are said to be impossible, or do although they are.
int count_uncovered(const Space& space, const Cover& cover) {
  PairSet held(space);
  for (const Point& point : cover.points) held.add(point);
  int uncovered = 0;
  for_each_pair(space, [&](const Pair& pair) {
    uncovered += held.holds(pair) == is_impossible(cover, pair);
  });
  return uncovered;
}

std::uint64_t all_points(const Space& space, const Point& fixed) {
  std::uint64_t points = 1;
  for (std::size_t axis = 0; axis < fixed.size(); ++axis)
    if (fixed[axis] == unchosen) points *= space.axes[axis].values.size();
  return points;
}

/// Whether what an allreduce of these elements is expected to give is what `fold` makes of those of
/// all ranks, and nothing else.
template <class T, class Fold>
void check_expected(const Case& what, Fold fold) {
  PlanBook book(settings_of_sweep());
  const ElementPools pools;
  Expectation expected(what, book, pools);
  std::vector<T> output(what.count);
  for (std::size_t i = 0; i < what.count; ++i) {
    std::vector<T> row(static_cast<std::size_t>(what.ranks));
    for (int rank = 0; rank < what.ranks; ++rank)
      std::memcpy(&row[static_cast<std::size_t>(rank)], expected.input(rank).data() + i * sizeof(T),
                  sizeof(T));
    output[i] = fold(row);
  }
  auto* const bytes = reinterpret_cast<std::byte*>(output.data());
  INFO(text(what));
  for (int rank = 0; rank < what.ranks; ++rank) CHECK(expected.right(rank, bytes));
  for (std::size_t i = 0; i < what.count; ++i) {
    if (output[i] != output[i]) continue;  // of a NaN some bits are free
    bytes[i * sizeof(T)] ^= std::byte{1};
    CHECK_FALSE(expected.right(0, bytes));
    bytes[i * sizeof(T)] ^= std::byte{1};
  }
}

Case allreduce_of_five_ranks(Dtype dtype, Reduction reduction) {
  Case what;
  what.kind = CollectiveKind::allreduce;
  what.dtype = dtype;
  what.reduction = reduction;
  what.ranks = 5;
  what.count = 40;
  return what;
}

}  // namespace

TEST_CASE("a sum of scaled contributions is expected to have every rank's factor", "[sweep]") {
  for (bool late : {false, true}) {
    Case what = allreduce_of_five_ranks(Dtype::u32, Reduction::premul);
    what.late_factor = late;
    check_expected<std::uint32_t>(what, [&](const std::vector<std::uint32_t>& row) {
      std::uint32_t sum = 0;
      for (std::size_t rank = 0; rank < row.size(); ++rank) {
        std::uint32_t factor = 0;
        std::memcpy(&factor, what.factor(static_cast<int>(rank)).bytes.data(), sizeof factor);
        sum += row[rank] * factor;
      }
      return sum;
    });
  }
}

TEST_CASE("what callers' functions make is expected, in rank order unless they commute",
          "[sweep]") {
  // One shot, by choice: a left fold.
  for (bool commutative : {false, true}) {
    Case what = allreduce_of_five_ranks(Dtype::f8e4m3, Reduction::user);
    what.commutative = commutative;
    check_expected<std::uint8_t>(what, [&](const std::vector<std::uint8_t>& row) {
      std::uint8_t value = row[0];
      for (std::size_t rank = 1; rank < row.size(); ++rank)
        value = static_cast<std::uint8_t>(commutative ? mingle(value, row[rank])
                                                      : append(value, row[rank]));
      return value;
    });
  }
}

TEST_CASE("an exact sum is expected to be a left fold of floats, rounded once", "[sweep]") {
  for (const char* algorithm : {"one-shot", "two-shot"}) {
    Case what = allreduce_of_five_ranks(Dtype::f32, Reduction::sum);
    what.exact = true;
    what.forced = find_algorithm(CollectiveKind::allreduce, algorithm);
    check_expected<float>(what, [](const std::vector<float>& row) {
      float sum = row[0];
      for (std::size_t rank = 1; rank < row.size(); ++rank) sum += row[rank];
      return sum;
    });
  }
}

TEST_CASE("points cover every pair that any point has, and no point breaks a rule", "[sweep]") {
  const Space space = small_space();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Cover found = cover(space, space.open_point(), seed);
    CHECK(count_uncovered(space, found) == 0);
    PairSet possible(space);
    for_each_point(
        space, space.open_point(), [&](const Point& point) { possible.add(point); },
        [](const Space::Rule&, std::uint64_t) {});
    for_each_pair(space, [&](const Pair& pair) {
      CHECK(possible.holds(pair) != is_impossible(found, pair));
    });
    for (const Point& point : found.points)
      for (std::size_t axis = 0; axis < point.size(); ++axis)
        CHECK(space.broken(point, axis) == nullptr);
  }
}

TEST_CASE("a pair that a third axis alone forbids is skipped with the reason", "[sweep]") {
  const Space space = small_space();
  const Cover found = cover(space, space.open_point(), 1);
  const Pair through_third{0, 0, 1, 1};
  const auto skipped =
      std::find_if(found.impossible.begin(), found.impossible.end(),
                   [&](const auto& each) { return same(each.first, through_third); });
  REQUIRE(skipped != found.impossible.end());
  CHECK(skipped->second->why.find("needs c") != std::string::npos);
  CHECK(found.impossible.size() == 3);
}

TEST_CASE("the pairs of a sweep are all covered, with few cases", "[sweep]") {
  PlanBook book(settings_of_sweep());
  const Space space = make_space(book);
  const Cover found = cover(space, space.open_point(), 1);
  CHECK(count_uncovered(space, found) == 0);
  // No set of points has fewer than the two largest axes have pairs.
  CHECK(found.points.size() < 4000);
}

TEST_CASE("what is enumerated and what is skipped are all the points there are", "[sweep]") {
  PlanBook book(settings_of_sweep());
  const Space space = make_space(book);
  for (int ranks = 1; ranks <= 3; ++ranks) {
    Point fixed = space.open_point();
    fixed[at(Axis::ranks)] = ranks - 1;
    std::uint64_t points = 0, skipped = 0;
    for_each_point(
        space, fixed, [&](const Point&) { ++points; },
        [&](const Space::Rule&, std::uint64_t count) { skipped += count; });
    CHECK(points > 1000);
    CHECK(points + skipped == all_points(space, fixed));
  }
}

TEST_CASE("every algorithm, type and reduction of the library is a value of a sweep", "[sweep]") {
  PlanBook book(settings_of_sweep());
  const Space space = make_space(book);
  const auto has = [&](Axis axis, const std::string& value) {
    const std::vector<std::string>& values = space.axes[at(axis)].values;
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  for (const Algorithm* row : algorithms()) {
    const std::string collective(name(row->collective));
    const bool expected = row->collective != CollectiveKind::barrier;
    CHECK(has(Axis::algorithm, collective + ":" + std::string(row->name)) == expected);
    CHECK(has(Axis::collective, collective) == expected);
  }
  for (const DtypeRow& row : dtypes()) CHECK(has(Axis::dtype, std::string(row.name)));
  for (const ReductionRow& row : reductions()) CHECK(has(Axis::reduction, std::string(row.name)));
}

TEST_CASE("a line gives back the case that it was made from, and no broken one", "[sweep]") {
  PlanBook book(settings_of_sweep());
  const Space space = make_space(book);
  for (const Point& point : cover(space, space.open_point(), 7).points) {
    const std::string line = to_line(space, {point, 12345678901234567890u});
    const std::optional<Draw> again = parse_line(space, line);
    REQUIRE(again);
    CHECK(again->point == point);
    CHECK(again->seed == 12345678901234567890u);
    CHECK_FALSE(parse_line(space, line.substr(0, line.find(" seed="))));
    CHECK_FALSE(parse_line(space, line.substr(line.find(' ') + 1)));
    CHECK_FALSE(parse_line(space, line + " count=many"));
  }
  CHECK_FALSE(parse_line(
      space,
      "ranks=1 algorithm=default determinism=default living=mixed collective=allgather root=none "
      "reduction=none dtype=i32 count=1 in_place=no alignment=aligned "
      "way=blocking seed=1"));
}

TEST_CASE("the counts about a tile make one tile and two", "[sweep]") {
  PlanBook book(settings_of_sweep());
  const Space space = make_space(book);
  Point point = space.open_point();
  REQUIRE(choose_value(space, "count=tile", point));
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    Point one = point;
    REQUIRE(complete(space, one, random) == nullptr);
    if (one[at(Axis::algorithm)] == 0) continue;  // by choice: of another count, another one
    for (const char* count : {"tile", "above-tile", "tiles"}) {
      choose_value(space, std::string("count=") + count, one);
      const Case what = case_of(space, one, 1, book);
      INFO(text(what));
      const Grid grid =
          grid_of(book.find(what).plan, what.arithmetic(), what.count, book.slot_bytes());
      CHECK(grid.tiles() == (count == std::string("tile")    ? 1u
                             : count == std::string("tiles") ? 3u
                                                             : 2u));
    }
  }
}

TEST_CASE("one byte that is not what it should be is seen, wherever it is", "[sweep]") {
  PlanBook book(settings_of_sweep());
  const ElementPools pools;
  for (const Alignment& alignment : alignments)
    for (bool in_place : {false, true}) {
      Case what;
      what.kind = CollectiveKind::allgather;
      what.dtype = Dtype::i32;  // of a NaN some bits are free
      what.ranks = 3;
      what.count = 7;
      what.in_place = in_place;
      what.alignment = alignment;
      Expectation expected(what, book, pools);
      GuardedBuffers buffers;
      buffers.lay_out(what, 1, expected.input(1));
      std::byte* end = buffers.output();
      for (int rank = 0; rank < what.ranks; ++rank)
        end = std::copy(expected.input(rank).begin(), expected.input(rank).end(), end);
      const auto well = [&] {
        return expected.right(1, buffers.output()) && buffers.rest_intact();
      };
      CHECK(well());
      for (std::byte* byte = buffers.output() - 128; byte < end + 128; ++byte) {
        *byte ^= std::byte{0x10};
        CHECK_FALSE(well());
        *byte ^= std::byte{0x10};
      }
      if (in_place) continue;
      for (std::size_t i = 0; i < expected.input(1).size(); ++i) {
        std::byte& byte = const_cast<std::byte&>(buffers.input()[i]);
        byte ^= std::byte{1};
        CHECK_FALSE(well());
        byte ^= std::byte{1};
      }
    }
}

TEST_CASE("buffers lie where the alignment says, whatever lay there before", "[sweep]") {
  GuardedBuffers buffers;
  PlanBook book(settings_of_sweep());
  const ElementPools pools;
  for (std::size_t count : {0, 5, 1000, 3, 70'000, 17})
    for (const Alignment& alignment : alignments) {
      Case what;
      what.dtype = Dtype::f64;
      what.count = count;
      what.alignment = alignment;
      what.ranks = 2;
      what.kind = CollectiveKind::allreduce;
      buffers.lay_out(what, 1, pools.cut(what, 1));
      const auto past_boundary = [](const std::byte* at) {
        return reinterpret_cast<std::uintptr_t>(at) % 64;
      };
      CHECK(past_boundary(buffers.input()) == alignment.input(8));
      CHECK(past_boundary(buffers.output()) == alignment.output(8));
    }
}

TEST_CASE("a rank that gets nothing may write nothing", "[sweep]") {
  const ElementPools pools;
  Case what;
  what.kind = CollectiveKind::reduce;
  what.ranks = 3;
  what.root = 2;
  what.count = 5;
  GuardedBuffers buffers;
  for (int rank = 0; rank < what.ranks; ++rank) {
    buffers.lay_out(what, rank, pools.cut(what, rank));
    *buffers.output() ^= std::byte{1};
    CHECK(buffers.rest_intact() == (rank == what.root));
  }
}
