// SPDX-License-Identifier: Apache-2.0
#include "support/mutants.h"

#include "algorithms/algorithm.h"
#include "plan/verify.h"
#include "support/catch.h"

using namespace khoro;

namespace {

void for_every_mutant(int ranks, const auto& look) {
  for (const Algorithm* algorithm : algorithms()) {
    const Collective collective{algorithm->collective, ranks, 0,
                                Collective{algorithm->collective}.reduces()};
    const Plan plan = make_plan(*algorithm, collective, Topology::one_machine(ranks), Shape{});
    for (const test::Mutant& mutant : test::mutants_of(plan, algorithm->least_slots))
      look(plan, mutant);
  }
}

bool foretells_something(const Verdict::Found& found) {
  const Outcome& outcome = found.outcome;
  return outcome.refused || outcome.hangs || outcome.left_over || outcome.early ||
         !outcome.wrong.empty() || !outcome.unequal.empty() || !found.witness.empty();
}

/// Two neighbours may be independent of each other, and two ranks of a ring need one slot only.
bool may_be_equivalent(const test::Mutant& mutant) {
  return mutant.kind() == "swap with the next" ||
         (mutant.kind() == "fewer slots" && mutant.plan.collective.ranks == 2);
}

}  // namespace

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
  CHECK(equivalent * 20 < mutants);
}

TEST_CASE("a lane that does not wait for its token is a race, whichever lane comes first",
          "[algorithms]") {
  int races = 0;
  for (int ranks = 2; ranks <= 16; ++ranks)
    for_every_mutant(ranks, [&](const Plan& plan, const test::Mutant& mutant) {
      if (mutant.kind() != "drop an await" && mutant.kind() != "one token more") return;
      INFO(plan.name() << " ranks " << ranks << " " << mutant.description);
      const Verdict verdict = verify(mutant.plan, {.slots = mutant.slots});
      REQUIRE(verdict.found);
      CHECK(name(verdict.found->fault) == "race");
      REQUIRE(verdict.found->witness.size() == 2);
      // The reader of the joined value goes before its writer.
      CHECK(verdict.found->witness[0].lane == 1);
      CHECK(verdict.found->witness[1].lane == 0);
      CHECK(verdict.found->witness[0].rank == verdict.found->witness[1].rank);
      ++races;
    });
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
