// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/case.h"
#include "support/expectation.h"
#include "sweep/space.h"

namespace khoro::test {

/// What a sweep varies, in the order of the axes of its space.
enum class Axis {
  ranks,
  algorithm,
  determinism,
  memory,
  living,
  collective,
  root,
  reduction,
  dtype,
  count,
  in_place,
  alignment,
  way
};
constexpr std::size_t at(Axis axis) { return static_cast<std::size_t>(axis); }

/// How many ranks a sweep has at most, in one communicator.
inline constexpr int most_ranks = 9;

/// Small slots make several tiles of few elements.
inline constexpr std::string_view sweep_settings =
    "KHORO_SLOT_BYTES=4096;KHORO_SLOTS=8;KHORO_DEADLINE=60s";

/// The axes with every value there is, from the tables of the library, and what cannot be. Borrows
/// the book, in which it looks up which plans there are.
Space make_space(PlanBook& book);

/// The call of a point.
Case case_of(const Space& space, const Point& point, std::uint64_t seed, PlanBook& book);
/// What of a point its communicator is made with: the point with that and the ranks alone chosen.
Point communicator_of(const Space& space, const Point& point);
/// Every one of so many ranks.
std::vector<Point> communicators_of(const Space& space, int ranks);
std::string settings_of(const Space& space, const Point& communicator);

/// A point and a seed as one line, "ranks=3 algorithm=... seed=12", and back; nothing if the line
/// is none, or its point breaks a rule.
struct Draw {
  Point point;
  std::uint64_t seed = 1;
};
std::string to_line(const Space& space, const Draw& draw);
std::optional<Draw> parse_line(const Space& space, std::string_view line);
/// Chooses "axis=value" in the point; false if there is none such.
bool choose_value(const Space& space, std::string_view assignment, Point& point);

}  // namespace khoro::test
