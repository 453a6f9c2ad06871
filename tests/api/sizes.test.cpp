// SPDX-License-Identifier: Apache-2.0
// Counts: none, few, uneven, those at which algorithms change, and more than memory holds; buffers
// in place and beside each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/rule.h"
#include "support/catch.h"
#include "support/play_cases.h"

using namespace khoro;
using namespace khoro::test;

namespace {

int roots_of(CollectiveKind kind, int ranks) { return Collective{kind}.has_root() ? ranks : 1; }

/// The type whose elements are the smallest.
Dtype smallest_type() {
  const auto smaller = [](const DtypeRow& a, const DtypeRow& b) { return a.bytes < b.bytes; };
  return std::min_element(dtypes().begin(), dtypes().end(), smaller)->dtype;
}

/// What all these cases have alike is in `like`. Of unequal blocks there are none for a collective
/// that has one block, nor for an algorithm that cannot do them.
void add_ways(std::vector<Case>& cases, Case like, const std::vector<std::size_t>& counts) {
  const Collective collective = like.collective();
  if (like.unequal && Collective{*like.kind, 2}.blocks() == 1) return;
  for (const Algorithm* way : ways_of(*like.kind)) {
    if (way != nullptr && !can_do(*way, collective)) continue;
    for (int root = 0; root < roots_of(*like.kind, like.ranks); ++root)
      for (std::size_t count : counts) {
        like.forced = way;
        like.root = root;
        like.count = count;
        ++like.seed;
        cases.push_back(like);
      }
  }
}

std::vector<std::size_t> up_to(std::size_t last) {
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count <= last; ++count) counts.push_back(count);
  return counts;
}

}  // namespace

TEST_CASE("a count of 0 moves nothing and ignores the pointers", "[api]") {
  constexpr int ranks = 4;
  const bool well = on_ranks(Living::processes, ranks, "", [](khoroComm_t comm, int rank) {
    std::vector<Case> cases{Case{.kind = std::nullopt, .ranks = ranks}};  // messages
    for (CollectiveKind kind : kinds_that_move_data())
      cases.push_back(Case{.kind = kind, .ranks = ranks});
    for (const Case& what : cases)
      for (const DtypeRow& dtype : dtypes()) {
        Case empty = what;
        empty.dtype = dtype.dtype;
        empty.root = ranks - 1;
        std::byte memory[2] = {std::byte{3}, std::byte{5}};
        succeed(make_call(empty, {rank, &memory[0], &memory[1], comm}), text(empty));
        succeed(make_call(empty, {rank, nullptr, nullptr, comm}), text(empty) + " of NULL");
        expect(memory[0] == std::byte{3} && memory[1] == std::byte{5}, text(empty) + " writes");
      }
  });
  CHECK(well);
}

TEST_CASE("a call of no elements writes nothing, in place or not, with any algorithm", "[api]") {
  std::vector<Case> cases;
  for (CollectiveKind kind : kinds_that_move_data())
    for (int ranks : {1, 2, 3, 4, 5})
      for (bool unequal : {false, true})
        for (bool in_place : {false, true})
          add_ways(cases, {.kind = kind, .unequal = unequal, .ranks = ranks, .in_place = in_place},
                   {0});
  play_cases(Living::processes, cases);
}

TEST_CASE("a count that memory cannot hold is refused, and no memory is touched", "[api]") {
  constexpr int ranks = 2;
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  const bool well = on_ranks(Living::processes, ranks, "", [](khoroComm_t comm, int rank) {
    std::vector<std::optional<CollectiveKind>> calls{std::nullopt};  // messages
    for (CollectiveKind kind : kinds_that_move_data()) calls.emplace_back(kind);
    for (const auto& kind : calls)
      for (const DtypeRow& dtype : dtypes())
        for (std::size_t count :
             {most, most - 1, most / dtype.bytes, most / dtype.bytes + 1,
              most / 2 / dtype.bytes + 1, std::size_t{1} << 63, most / 2 / dtype.bytes}) {
          Case what{.kind = kind, .dtype = dtype.dtype, .ranks = ranks, .count = count};
          if (count == 0) continue;  // one more than the largest of a byte
          if (count == most / 2 / dtype.bytes && what.collective().blocks() == 1) continue;
          std::byte memory[16] = {};
          const khoroResult_t result = make_call(what, {rank, &memory[0], &memory[8], comm});
          expect(result == khoroInvalidArgument, text(what) + " is not refused");
          for (std::byte byte : memory) expect(byte == std::byte{0}, text(what) + " writes");
        }
    std::int32_t one = 1;
    succeed(khoroAllReduce(&one, &one, 1, khoroInt32, khoroSum, comm, nullptr), "after it all");
    expect(one == ranks, "the sum after it all");
  });
  CHECK(well);
}

TEST_CASE("a reducescatter of few elements stays within its output", "[api]") {
  std::vector<Case> cases;
  for (int ranks = 2; ranks <= 16; ++ranks)
    for (bool unequal : {false, true})
      add_ways(cases,
               {.kind = CollectiveKind::reducescatter,
                .unequal = unequal,
                .dtype = Dtype::i32,
                .ranks = ranks},
               {1, 2, 3});
  play_cases(Living::processes, cases);
}

TEST_CASE("a broadcast of few bytes is right on any number of ranks, from each root", "[api]") {
  std::vector<Case> cases;
  for (int ranks : {3, 5, 6, 7, 9, 11})
    add_ways(cases, {.kind = CollectiveKind::broadcast, .dtype = smallest_type(), .ranks = ranks},
             up_to(2 * static_cast<std::size_t>(ranks) + 3));
  play_cases(Living::processes, cases);
}

TEST_CASE("in place is right with each root and leaves other blocks alone", "[api]") {
  std::vector<Case> cases;
  for (CollectiveKind kind : kinds_that_move_data())
    for (int ranks : {2, 3, 4})
      for (Dtype dtype : {smallest_type(), Dtype::f32, Dtype::i64})
        for (bool unequal : {false, true})
          add_ways(
              cases,
              {.kind = kind, .unequal = unequal, .dtype = dtype, .ranks = ranks, .in_place = true},
              {1, 5, 33, 1000, 4099});
  play_cases(Living::processes, cases);
}

TEST_CASE("a reduce leaves inputs and the outputs of other ranks alone", "[api]") {
  std::vector<Case> cases;
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::bf16})
    add_ways(cases, {.kind = CollectiveKind::reduce, .dtype = dtype, .ranks = 4},
             {1, 3, 4, 100, 5000});
  play_cases(Living::processes, cases);
}

TEST_CASE("calls are right on both sides of each size at which another algorithm is chosen",
          "[api]") {
  std::vector<Case> cases;
  for (const RuleRow& row : default_rule())
    for (int ranks : {2, 3, 9})
      for (Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (Reduction reduction : {Reduction::sum, Reduction::avg}) {
          Case what{.kind = row.collective, .dtype = dtype, .reduction = reduction, .ranks = ranks};
          const auto blocks = static_cast<std::size_t>(what.collective().blocks());
          if (row.most_bytes == RuleRow::any_bytes || ranks > row.most_ranks) continue;
          if (reduction == Reduction::avg && !what.collective().reduces()) continue;
          what.count = row.most_bytes / what.element() / blocks;
          what.seed = cases.size();
          cases.push_back(what);
          ++what.count;
          cases.push_back(what);
        }
  play_cases(Living::threads, cases);
}
