// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "algorithms/algorithm.h"
#include "plan/image.h"
#include "plan/text.h"
#include "support/catch.h"
#include "support/golden.h"
#include "support/groupings.h"

using namespace khoro;

namespace {

void check_golden_plan(const Algorithm& algorithm, const Topology& topology,
                       const std::string& ending) {
  Collective collective{algorithm.collective, topology.ranks()};
  if (collective.has_root()) collective.root = 1;
  const Plan plan = make_plan(algorithm, collective, topology, Shape{});
  test::check_golden(test::golden_folder() / "plans" / (plan.name() + ending), print(plan));
}

}  // namespace

TEST_CASE("the plan of every algorithm for four ranks is the golden one", "[algorithms]") {
  for (const Algorithm* algorithm : algorithms()) {
    if (!algorithm->by_machine) {
      check_golden_plan(*algorithm, Topology::one_machine(4), ".plan");
      continue;
    }
    check_golden_plan(*algorithm, Topology::machines({0, 0, 1, 1}), ".plan");
    check_golden_plan(*algorithm, Topology::machines({0, 1, 0, 0}), ".uneven.plan");
  }
}

TEST_CASE("the plan of every algorithm reads back as it was printed, down to the image",
          "[algorithms]") {
  for (const Algorithm* algorithm : algorithms())
    for (int ranks : {1, 2, 3, 5, 8, 13})
      for (const test::Grouping& machines : test::groupings_for(*algorithm, ranks)) {
        Collective collective{algorithm->collective, ranks};
        if (collective.has_root()) collective.root = ranks - 1;
        collective.average = collective.reduces();
        const Plan plan = make_plan(*algorithm, collective, Topology::machines(machines), Shape{});
        const std::string text = print(plan);
        INFO(text);
        const Parsed parsed = parse(text);
        REQUIRE(parsed.plan.has_value());
        CHECK(print(*parsed.plan) == text);
        CHECK(parsed.plan->collective == collective);
        CHECK(parsed.plan->chunks == plan.chunks);
        CHECK(parsed.plan->widest_message == plan.widest_message);
        for (int rank = 0; rank < ranks; ++rank) {
          const Image image = flatten(plan, rank);
          CHECK(flatten(*parsed.plan, rank).hash == image.hash);
          for (const Port& port : image.ports) CHECK(port.index < algorithm->most_channels);
        }
      }
}
