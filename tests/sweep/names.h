// SPDX-License-Identifier: Apache-2.0
// What the names of values mean on the axes of a sweep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "support/case.h"

namespace khoro::test {

inline constexpr std::string_view none = "none";
inline constexpr std::string_view livings[] = {"processes", "threads", "mixed"};
inline constexpr std::string_view placements[] = {"no", "yes"};
inline constexpr std::string_view determinisms[] = {"default", "exact"};

/// Where the buffers of calls lie, and how messages go between virtual GPUs.
struct MemoryName {
  std::string_view name;
  std::string_view settings;
  int weight;  // of being drawn: virtual GPUs take most of the time
  bool is_host() const { return settings.empty(); }
};
inline constexpr MemoryName memories[] = {
    {"host", "", 45},
    {"gpus-flagged", ";KHORO_MEMORY=virtual;KHORO_FLAGGED_BYTES=16K;KHORO_DIRECT_BYTES=0", 1},
    {"gpus-slots", ";KHORO_MEMORY=virtual;KHORO_FLAGGED_BYTES=0;KHORO_DIRECT_BYTES=0", 1},
    {"gpus-direct", ";KHORO_MEMORY=virtual;KHORO_FLAGGED_BYTES=0;KHORO_DIRECT_BYTES=1", 1},
    {"staged-flagged", ";KHORO_MEMORY=virtual;KHORO_FLAGGED_BYTES=16K;KHORO_PEER_ACCESS=off", 1},
    {"staged-slots", ";KHORO_MEMORY=virtual;KHORO_FLAGGED_BYTES=0;KHORO_PEER_ACCESS=off", 1},
};

struct RootName {
  std::string_view name;
  int (*rank)(int ranks);
};
inline constexpr RootName roots[] = {{"first", [](int) { return 0; }},
                                     {"middle", [](int ranks) { return ranks / 2; }},
                                     {"last", [](int ranks) { return ranks - 1; }}};

/// What the interesting counts are made of.
struct Sizes {
  std::size_t ranks = 1;
  std::size_t granule = 1;  // elements that make the 128 bytes at which chunks are cut
  std::size_t tile = 1;     // the most elements that go in one tile
};
struct CountName {
  std::string_view name;
  std::size_t (*count)(const Sizes&);
  int weight;  // of being drawn: long calls take most of the time
};
inline constexpr CountName counts[] = {
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

/// A collective, with a v at the end of its name if its blocks are unequal, or messages.
struct CollectiveName {
  std::string name;
  std::optional<CollectiveKind> kind;
  bool unequal = false;
  bool tagged = false;
};
/// Those that have algorithms, in the order of the registry, and messages.
const std::vector<CollectiveName>& collectives();

/// A reduction of the library's, or one that each rank makes.
struct ReductionName {
  std::string_view name;
  Reduction reduction = Reduction::sum;
  bool late_factor = false;
  bool commutative = true;
};
const std::vector<ReductionName>& all_reductions();

/// An algorithm that is forced; null: the library chooses.
struct AlgorithmName {
  std::string name;
  const Algorithm* forced = nullptr;
};
const std::vector<AlgorithmName>& forced_algorithms();

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

template <class Rows>
std::vector<int> weights_of(const Rows& rows) {
  std::vector<int> weights;
  for (const auto& row : rows) weights.push_back(row.weight);
  return weights;
}

/// Null if there is none.
template <class Rows>
auto* row_named(const Rows& rows, std::string_view name) {
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [name](const auto& each) { return each.name == name; });
  return row == std::end(rows) ? nullptr : &*row;
}

}  // namespace khoro::test
