// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/case_calls.h"
#include "support/case_memory.h"
#include "support/catch.h"
#include "support/expectation.h"
#include "support/fleet.h"
#include "support/guarded_buffers.h"

namespace khoro::test {

inline constexpr const char* case_settings = "KHORO_SLOT_BYTES=4096;KHORO_DEADLINE=60s";

inline std::vector<CollectiveKind> kinds_that_move_data() {
  std::vector<CollectiveKind> kinds;
  for (const Algorithm* row : algorithms())
    if (row->collective != CollectiveKind::barrier &&
        std::find(kinds.begin(), kinds.end(), row->collective) == kinds.end())
      kinds.push_back(row->collective);
  return kinds;
}

/// The algorithms of a collective, and null for the library's choice.
inline std::vector<const Algorithm*> ways_of(CollectiveKind kind) {
  std::vector<const Algorithm*> ways{nullptr};
  for (const Algorithm* row : algorithms())
    if (row->collective == kind) ways.push_back(row);
  return ways;
}

/// Of every collective, with any algorithm that can do it, of so many elements each. All that the
/// calls have alike is in `like`.
inline std::vector<Case> every_algorithm(Case like, const std::vector<std::size_t>& counts) {
  std::vector<Case> cases;
  for (CollectiveKind kind : kinds_that_move_data()) {
    if (like.unequal && Collective{kind, 2}.blocks() == 1) continue;
    like.kind = kind;
    for (const Algorithm* way : ways_of(kind)) {
      if (like.unequal && way != nullptr && !can_do(*way, like.collective())) continue;
      for (std::size_t count : counts) {
        like.forced = way;
        like.count = count;
        like.root = static_cast<int>(count) % like.ranks;
        ++like.seed;
        cases.push_back(like);
      }
    }
  }
  return cases;
}

/// Plays one case on one rank; throws when it goes wrong.
inline void play_case(const Case& what, Expectation& expected, int rank, khoroComm_t comm,
                      CaseMemory& memory) {
  GuardedBuffers buffers;
  buffers.lay_out(what, rank, expected.input(rank));
  memory.bring(buffers.all());
  const Part part{rank, memory.at(buffers.input()), memory.at(buffers.output()), comm,
                  memory.stream()};
  succeed(make_call_its_way(what, part), text(what));
  memory.bring_back();
  expect(expected.right(rank, buffers.output()), text(what) + ": the output has other bits");
  expect(buffers.rest_intact(), text(what) + ": something beside the output was written");
}

/// Plays all of them, those of as many ranks and one algorithm on one communicator. `others` are
/// settings that are to hold too.
inline void play_cases(Living living, const std::vector<Case>& cases,
                       const std::string& others = {}) {
  const std::string common = std::string(case_settings) + ";" + others;
  Settings in_force;
  in_force.choose(common);
  PlanBook book(in_force);
  static const ElementPools pools;
  std::map<std::pair<int, std::string>, std::vector<Case>> by_communicator;
  for (const Case& what : cases)
    by_communicator[{what.ranks, settings_of(what, common)}].push_back(what);
  REQUIRE_FALSE(by_communicator.empty());
  for (const auto& [communicator, cases_of_it] : by_communicator) {
    const std::vector<Case>& played = cases_of_it;  // lambdas of clang take no structured binding
    std::vector<std::unique_ptr<Expectation>> expected;
    for (const Case& what : played)
      expected.push_back(std::make_unique<Expectation>(what, book, pools));
    INFO(text(played.front()) << " and " << played.size() - 1 << " more");
    const auto& [ranks, settings] = communicator;
    CHECK(on_ranks(living, ranks, settings, [&](khoroComm_t comm, int rank) {
      CaseMemory memory(comm);
      for (std::size_t i = 0; i < played.size(); ++i)
        play_case(played[i], *expected[i], rank, comm, memory);
    }));
  }
}

}  // namespace khoro::test
