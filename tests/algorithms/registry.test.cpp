// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "support/catch.h"

using namespace khoro;

TEST_CASE("every algorithm is found under its name and under no other", "[algorithms]") {
  for (const Algorithm* algorithm : algorithms())
    CHECK(find_algorithm(algorithm->collective, algorithm->name) == algorithm);
  CHECK(find_algorithm(CollectiveKind::allreduce, "no-such") == nullptr);
  CHECK(find_algorithm(CollectiveKind::barrier, "ring") == nullptr);
}

TEST_CASE("a plan that cannot be is refused with its name and the reason", "[algorithms]") {
  const Algorithm& ring = *find_algorithm(CollectiveKind::allreduce, "ring");
  const auto make = [&](const Collective& collective, int places) {
    return make_plan(ring, collective, Topology::one_machine(places), Shape{});
  };
  CHECK_THROWS_WITH(make({CollectiveKind::allgather, 4}, 4),
                    "plan allreduce.ring: is no algorithm for allgather");
  CHECK_THROWS_WITH(make({CollectiveKind::allreduce, 0}, 0),
                    "plan allreduce.ring: 0 ranks: there must be at least 1");
  CHECK_THROWS_WITH(make({CollectiveKind::allreduce, 4}, 3),
                    "plan allreduce.ring: 4 ranks over a topology that places 3");
}

TEST_CASE("the plan hash depends on all that generates a plan", "[algorithms]") {
  const auto hash = [](std::string_view name, Collective collective, Topology topology,
                       Shape shape) {
    return plan_hash(*find_algorithm(collective.kind, name), collective, topology, shape);
  };
  const Collective sum{CollectiveKind::allreduce, 4};
  const Topology machine = Topology::one_machine(4);
  Topology other = machine;
  other.sites[0].name = "another";
  std::set<std::uint64_t> hashes = {
      hash("ring", sum, machine, {}),
      hash("ring", {CollectiveKind::allreduce, 4, 0, true}, machine, {}),
      hash("ring", {CollectiveKind::allgather, 4}, machine, {}),
      hash("ring", {CollectiveKind::allreduce, 5}, Topology::one_machine(5), {}),
      hash("ring", sum, other, {}),
      hash("ring", sum, machine, {2, 8}),
      hash("ring", sum, machine, {1, 4}),
  };
  CHECK(hashes.size() == 7);
  Algorithm newer = *find_algorithm(CollectiveKind::allreduce, "ring");
  newer.version += 1;
  hashes.insert(plan_hash(newer, sum, machine, {}));
  CHECK(hashes.size() == 8);
  CHECK(hash("ring", sum, machine, {}) == hash("ring", sum, machine, {}));
}
