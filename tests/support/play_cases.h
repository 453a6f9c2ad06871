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

/// A case on one rank: its buffers, and what must be in them at its end.
class RankCase {
 public:
  RankCase(const Case& what, Expectation& expected, int rank, khoroComm_t comm, CaseMemory& memory)
      : what_(what), expected_(expected), rank_(rank), comm_(comm), memory_(memory) {
    buffers_.lay_out(what, rank, expected.input(rank));
    memory.bring(buffers_.all());
  }
  const Case& what() const { return what_; }
  Part part() {
    return {rank_, memory_.at(buffers_.input()), memory_.at(buffers_.output()), comm_,
            memory_.stream()};
  }
  /// After the call has ended. Throws when it went wrong.
  void check() {
    memory_.bring_back();
    expect(expected_.right(rank_, buffers_.output()), text(what_) + ": the output has other bits");
    expect(buffers_.rest_intact(), text(what_) + ": something beside the output was written");
  }

 private:
  const Case& what_;
  Expectation& expected_;
  int rank_;
  khoroComm_t comm_;
  CaseMemory& memory_;
  GuardedBuffers buffers_;
};

/// Plays one case on one rank; throws when it goes wrong.
inline void play_case(const Case& what, Expectation& expected, int rank, khoroComm_t comm,
                      CaseMemory& memory) {
  RankCase now(what, expected, rank, comm, memory);
  succeed(make_call_its_way(what, now.part()), text(what));
  now.check();
}

/// Plays several in one group, on a stream if there is one.
inline void play_group(const std::vector<Case>& cases,
                       const std::vector<std::unique_ptr<Expectation>>& expected, int rank,
                       khoroComm_t comm) {
  std::vector<std::unique_ptr<CaseMemory>> memories;
  std::vector<std::unique_ptr<RankCase>> now;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    memories.push_back(std::make_unique<CaseMemory>(comm));
    now.push_back(std::make_unique<RankCase>(cases[i], *expected[i], rank, comm, *memories[i]));
  }
  const khoroStream_t stream = memories.front()->stream();
  succeed(khoroGroupStart(), "group");
  for (const auto& each : now) {
    Part part = each->part();
    part.stream = stream;
    succeed(make_call(each->what(), part), text(each->what()));
  }
  succeed(khoroGroupEnd(), "group");
  if (stream) succeed(khoroStreamSynchronize(stream), "group");
  for (const auto& each : now) each->check();
}

/// Whether each case is a call by itself, in its own way, or those of a communicator are a group.
enum class Playing { alone, together };

/// Plays all of them, those of as many ranks and one algorithm on one communicator. `others` are
/// settings that are to hold too.
inline void play_cases(Living living, const std::vector<Case>& cases,
                       const std::string& others = {}, Playing playing = Playing::alone) {
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
      if (playing == Playing::together) return play_group(played, expected, rank, comm);
      CaseMemory memory(comm);
      for (std::size_t i = 0; i < played.size(); ++i)
        play_case(played[i], *expected[i], rank, comm, memory);
    }));
  }
}

}  // namespace khoro::test
