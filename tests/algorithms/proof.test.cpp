// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "algorithms/algorithm.h"
#include "plan/proofs.h"
#include "support/catch.h"
#include "support/groupings.h"

using namespace khoro;

namespace {

/// Calls `look(algorithm, plan, machines)` for every algorithm at `ranks`, with and without what
/// its collective may ask besides.
void for_every_plan(int ranks, const auto& look) {
  for (const Algorithm* algorithm : algorithms()) {
    std::vector<Collective> collectives = {{algorithm->collective, ranks}};
    if (collectives[0].reduces()) collectives.push_back({algorithm->collective, ranks, 0, true});
    for (bool rank_order : {false, true}) {
      if (!collectives[0].reduces() || (rank_order && !algorithm->rank_order)) continue;
      for (bool premul : {false, true})
        if (rank_order || premul)
          collectives.push_back(
              {algorithm->collective, ranks, ranks - 1, !premul, false, rank_order, premul});
    }
    if (collectives[0].has_root())
      for (int root = 1; root < ranks; root += std::max(ranks - 2, 1))  // 1 and the last
        collectives.push_back({algorithm->collective, ranks, root});
    for (const test::Grouping& machines : test::groupings_for(*algorithm, ranks))
      for (const Collective& collective : collectives)
        look(*algorithm, make_plan(*algorithm, collective, Topology::machines(machines), Shape{}),
             machines);
  }
}

}  // namespace

TEST_CASE("every algorithm is proved for 1..64 ranks, in place and not, by copy and by reference",
          "[algorithms]") {
  for (int ranks = 1; ranks <= 64; ++ranks)
    for_every_plan(
        ranks, [&](const Algorithm& algorithm, const Plan& plan, const test::Grouping& machines) {
          for (int slots : {algorithm.least_slots, algorithm.least_slots + 1, 8})
            for (const Proofs::Failure& failure : prove(plan, slots).failures)
              FAIL_CHECK(plan.name()
                         << " ranks " << ranks << " machines " << test::text(machines) << " root "
                         << plan.collective.root << " slots " << slots << " in place "
                         << failure.options.in_place << " references " << failure.options.references
                         << ": " << failure.found.diagnostic.place << ": "
                         << failure.found.diagnostic.message);
        });
}

TEST_CASE("an algorithm that does not fold in rank order is none for who asks for it",
          "[algorithms]") {
  for (const Algorithm* algorithm : algorithms()) {
    if (!Collective{algorithm->collective}.reduces() || algorithm->rank_order) continue;
    for (bool average : {false, true}) {
      Collective collective{algorithm->collective, 5, 0, average};
      Plan plan = make_plan(*algorithm, collective, Topology::one_machine(5), Shape{});
      plan.collective.rank_order = true;
      INFO(plan.name());
      const Verdict verdict = verify(plan, {.slots = algorithm->least_slots});
      REQUIRE(verdict.found);
      CHECK(verdict.found->fault == Fault::wrong_order);
    }
  }
}

TEST_CASE("what an algorithm excludes is a fault", "[algorithms]") {
  for (int ranks : {3, 4, 7, 8, 16})  // two ranks of a ring need less
    for_every_plan(
        ranks, [&](const Algorithm& algorithm, const Plan& plan, const test::Grouping& machines) {
          if (!test::is_one_machine(machines)) return;  // as do two of each
          INFO(plan.name() << " ranks " << ranks);
          if (algorithm.least_slots > 1) {
            const Verdict verdict = verify(plan, {.slots = algorithm.least_slots - 1});
            REQUIRE(verdict.found);
            CHECK(verdict.found->fault == Fault::deadlock);
            CHECK(verdict.found->outcome.hangs);
          }
          // What a factor was applied to is never lent.
          if (!algorithm.lends_in_place && !plan.collective.premul) {
            Plan lending = plan;
            lending.lends_in_place = true;
            const Verdict verdict = verify(
                lending, {.slots = algorithm.least_slots, .in_place = true, .references = true});
            REQUIRE(verdict.found);
            CHECK(verdict.found->fault == Fault::deadlock);
          }
        });
}
