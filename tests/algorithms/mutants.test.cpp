// SPDX-License-Identifier: Apache-2.0
#include "support/mutants.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "plan/verify.h"
#include "support/catch.h"
#include "support/groupings.h"
#include "support/walk.h"

using namespace khoro;

namespace {

void for_every_mutant(int ranks, const auto& look, const auto& is_of_interest) {
  for (const Algorithm* algorithm : algorithms())
    for (const test::Grouping& machines : test::groupings_for(*algorithm, ranks)) {
      const Collective collective{algorithm->collective, ranks, 0,
                                  Collective{algorithm->collective}.reduces()};
      const Plan plan = make_plan(*algorithm, collective, Topology::machines(machines), Shape{});
      if (!is_of_interest(plan)) continue;
      INFO("machines " << test::text(machines));
      for (const test::Mutant& mutant : test::mutants_of(plan, algorithm->least_slots))
        look(plan, mutant);
    }
}

void for_every_mutant(int ranks, const auto& look) {
  for_every_mutant(ranks, look, [](const Plan&) { return true; });
}

bool has_tokens(const Plan& plan) {
  for (int rank = 0; rank < plan.collective.ranks; ++rank)
    if (!plan.program(rank).tokens.empty()) return true;
  return false;
}

bool foretells_something(const Verdict::Found& found) {
  const Outcome& outcome = found.outcome;
  return outcome.refused || outcome.hangs || outcome.left_over || outcome.early ||
         !outcome.wrong.empty() || !outcome.unequal.empty() || !found.witness.empty();
}

/// Two neighbours may be independent of each other, a chunk may be reduced on one rank for all, and
/// a ring needs one slot only for two ranks, or where few of a machine's have a part.
bool may_be_equivalent(const test::Mutant& mutant) {
  const Collective& collective = mutant.plan.collective;
  const bool small_rings =
      collective.ranks == 2 || find_algorithm(collective.kind, mutant.plan.algorithm)->by_machine;
  return mutant.kind() == "swap with the next" || mutant.kind() == "swap two reduces" ||
         (mutant.kind() == "fewer slots" && small_rings);
}

/// The contributions in a walked value, "rank.chunk" each, in the order of the text.
std::vector<std::string> leaves(const std::string& value) {
  std::vector<std::string> leaves;
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::size_t end = i;
    while (end < value.size() && (std::isdigit(value[end]) != 0 || value[end] == '.')) ++end;
    if (end > i) leaves.push_back(value.substr(i, end - i));
    i = std::max(i, end > i ? end - 1 : i);
  }
  return leaves;
}

bool is_right(const Plan& plan, int rank, int chunk, const std::string& value) {
  const auto required = plan.collective.requirement(rank, chunk, plan.chunks);
  if (!required) return value.empty();
  std::vector<std::string> expected;
  for (int from = 0; from < plan.collective.ranks; ++from)
    if (required->from == Requirement::all_ranks || required->from == from)
      expected.push_back(std::to_string(from) + "." + std::to_string(required->chunk));
  std::vector<std::string> got = leaves(value);
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  if (!plan.collective.average) return got == expected && value.find("/n") == std::string::npos;
  // What is folded in after a division stands behind its mark.
  return got == expected && value.find("/n") + 2 == value.size();
}

/// The wrong output chunks by a slow walk; nothing if it does not come to its end.
std::optional<std::vector<Outcome::Chunk>> walked_wrong(const Plan& plan) {
  const test::Walk walk = test::walk(plan);
  if (!walk.finished) return std::nullopt;
  std::vector<Outcome::Chunk> wrong;
  for (int rank = 0; rank < plan.collective.ranks; ++rank)
    for (int chunk = 0; chunk < plan.collective.output_chunks(plan.chunks); ++chunk)
      if (!is_right(plan, rank, chunk, walk.outputs[std::size_t(rank)][std::size_t(chunk)]))
        wrong.push_back({rank, chunk});
  return wrong;
}

}  // namespace

TEST_CASE("what a verdict foretells of a mutant is what a slow walk finds", "[algorithms]") {
  int walked = 0;
  for (int ranks = 2; ranks <= 5; ++ranks)
    for_every_mutant(ranks, [&](const Plan& plan, const test::Mutant& mutant) {
      INFO(plan.name() << " ranks " << ranks << " " << mutant.description);
      // The walk has channels without end.
      const Verdict verdict = verify(mutant.plan, {.slots = 64, .tiles = 1});
      const Outcome outcome = verdict.found ? verdict.found->outcome : Outcome{};
      if (outcome.refused || (verdict.found && verdict.found->fault == Fault::race)) return;
      const auto wrong = walked_wrong(mutant.plan);
      CHECK(wrong.has_value() == !(outcome.hangs || outcome.left_over));
      if (wrong) CHECK(*wrong == outcome.wrong);
      ++walked;
    });
  CHECK(walked > 2500);
}

TEST_CASE("a mutant is rejected with what comes of running it, and few are as good as their plan",
          "[algorithms]") {
  int mutants = 0;
  int equivalent = 0;
  for (int ranks = 2; ranks <= 6; ++ranks)
    for_every_mutant(ranks, [&](const Plan& plan, const test::Mutant& mutant) {
      INFO(plan.name() << " ranks " << ranks << " " << mutant.description);
      const Verdict verdict = verify(mutant.plan, {.slots = mutant.slots});
      ++mutants;
      equivalent += verdict.proved();
      if (verdict.proved())
        CHECK(may_be_equivalent(mutant));
      else
        CHECK(foretells_something(*verdict.found));
    });
  CHECK(mutants > 5000);
  CHECK(equivalent * 10 < mutants);
}

TEST_CASE("a lane that does not wait for its token is a race, whichever lane comes first",
          "[algorithms]") {
  int races = 0;
  const auto look = [&](const Plan& plan, const test::Mutant& mutant) {
    if (mutant.kind() != "drop an await" && mutant.kind() != "one token more") return;
    INFO(plan.name() << " ranks " << plan.collective.ranks << " " << mutant.description);
    const Verdict verdict = verify(mutant.plan, {.slots = mutant.slots});
    REQUIRE(verdict.found);
    CHECK(name(verdict.found->fault) == "race");
    const std::vector<StepAt>& witness = verdict.found->witness;
    REQUIRE(witness.size() == 2);
    CHECK(witness[0].rank == witness[1].rank);
    CHECK(witness[0].lane != witness[1].lane);
    ++races;
    if (plan.algorithm != "double-tree") return;
    // The reader of the joined value goes before its writer.
    CHECK(witness[0].lane == 1);
    CHECK(witness[1].lane == 0);
  };
  for (int ranks = 2; ranks <= 16; ++ranks) for_every_mutant(ranks, look, has_tokens);
  CHECK(races > 50);
}

TEST_CASE("mutants of larger plans are rejected too", "[algorithms]") {
  for (int ranks : {9, 16}) {
    int count = 0;
    for_every_mutant(ranks, [&](const Plan& plan, const test::Mutant& mutant) {
      if (++count % 7 != 0) return;
      INFO(plan.name() << " ranks " << ranks << " " << mutant.description);
      const Verdict verdict = verify(mutant.plan, {.slots = mutant.slots});
      if (verdict.proved()) CHECK(may_be_equivalent(mutant));
    });
  }
}
