// SPDX-License-Identifier: Apache-2.0
#include "algorithms/algorithm.h"
#include "plan/text.h"
#include "support/catch.h"
#include "support/walk.h"

using namespace khoro;

namespace {

Plan ring(const Collective& collective) {
  return make_plan(*find_algorithm(collective.kind, "ring"), collective,
                   Topology::one_machine(collective.ranks), Shape{});
}

}  // namespace

TEST_CASE("a ring allreduce folds each chunk once along the ring and scales it at its end",
          "[algorithms]") {
  const test::Walk walk = test::walk(ring({CollectiveKind::allreduce, 3, 0, true}));
  REQUIRE(walk.finished);
  const std::vector<std::string> sums = {"(((0.0+1.0)+2.0))/n", "(((1.1+2.1)+0.1))/n",
                                         "(((2.2+0.2)+1.2))/n"};
  for (const auto& output : walk.outputs) CHECK(output == sums);
}

TEST_CASE("a ring reducescatter ends each block at its owner", "[algorithms]") {
  const test::Walk walk = test::walk(ring({CollectiveKind::reducescatter, 3}));
  REQUIRE(walk.finished);
  CHECK(walk.outputs == std::vector<std::vector<std::string>>{
                            {"((1.0+2.0)+0.0)"}, {"((2.1+0.1)+1.1)"}, {"((0.2+1.2)+2.2)"}});
}

TEST_CASE("a ring allgather brings every block everywhere", "[algorithms]") {
  const test::Walk walk = test::walk(ring({CollectiveKind::allgather, 3}));
  REQUIRE(walk.finished);
  for (const auto& output : walk.outputs)
    CHECK(output == std::vector<std::string>{"0.0", "1.0", "2.0"});
}

TEST_CASE("rank 0 of a ring of four prints as the design says", "[algorithms]") {
  CHECK(print(ring({CollectiveKind::allreduce, 4}), 0) ==
        R"(plan allreduce.ring ranks 4 chunks 4
rank 0
  lane 0
    read input[0] | send 1
    recv 3 | reduce input[3] | send 1
    recv 3 | reduce input[2] | send 1
    recv 3 | reduce input[1] | write output[1] | send 1
    recv 3 | write output[0] | send 1
    recv 3 | write output[3] | send 1
    recv 3 | write output[2]
)");
}
