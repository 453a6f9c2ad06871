// SPDX-License-Identifier: Apache-2.0
// The algorithm that docs/guides/add-an-algorithm.md adds is one.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "plan/proofs.h"
#include "support/catch.h"
#include "support/walk.h"

namespace khoro {
extern const Algorithm star_broadcast;
}
using namespace khoro;

TEST_CASE("the algorithm of the guide is proved, and costs what its formulas say", "[algorithms]") {
  for (int ranks = 1; ranks <= 16; ++ranks)
    for (int root = 0; root < ranks; ++root) {
      const Collective collective{CollectiveKind::broadcast, ranks, root};
      const Topology topology = Topology::one_machine(ranks);
      const Plan plan = make_plan(star_broadcast, collective, topology, Shape{});
      INFO(ranks << " ranks, root " << root);
      CHECK(prove(plan, star_broadcast.least_slots).failures.empty());
      const test::Walk walk = test::walk(plan);
      const Cost cost = star_broadcast.cost(collective, topology, Shape{});
      CHECK(walk.rounds == cost.rounds);
      CHECK(*std::max_element(walk.sent.begin(), walk.sent.end()) == cost.sent_per_byte);
    }
}
