// SPDX-License-Identifier: Apache-2.0
// The orders of folding that an algorithm promises.
#include "algorithms/algorithm.h"
#include "support/catch.h"
#include "support/walk.h"

using namespace khoro;

namespace {

std::vector<std::string> first_output(std::string_view algorithm, int ranks) {
  const Collective collective{CollectiveKind::allreduce, ranks};
  const Plan plan = make_plan(*find_algorithm(collective.kind, algorithm), collective,
                              Topology::one_machine(ranks), Shape{});
  return test::walk(plan).outputs.front();
}

}  // namespace

TEST_CASE("one-shot and two-shot fold in rank order from the left", "[algorithms]") {
  CHECK(first_output("one-shot", 4) == std::vector<std::string>{"(((0.0+1.0)+2.0)+3.0)"});
  CHECK(first_output("two-shot", 3) ==
        std::vector<std::string>{"((0.0+1.0)+2.0)", "((0.1+1.1)+2.1)", "((0.2+1.2)+2.2)"});
}

TEST_CASE("the two trees of five ranks are the first one and its ranks moved on", "[algorithms]") {
  // Ranks 1 and 3 have children in the first tree, 2 and 4 in the second.
  CHECK(first_output("double-tree", 5) ==
        std::vector<std::string>{"((((0.0+1.0)+2.0)+3.0)+4.0)", "((((1.1+2.1)+3.1)+4.1)+0.1)"});
}

TEST_CASE("recursive doubling folds neighbours first, in rank order", "[algorithms]") {
  CHECK(first_output("recursive-doubling", 8) ==
        std::vector<std::string>{"(((0.0+1.0)+(2.0+3.0))+((4.0+5.0)+(6.0+7.0)))"});
  // Of six ranks, 1 and 3 are folded in.
  CHECK(first_output("recursive-doubling", 6) ==
        std::vector<std::string>{"(((0.0+1.0)+(2.0+3.0))+(4.0+5.0))"});
}

TEST_CASE("halving and doubling fold each chunk as recursive doubling does", "[algorithms]") {
  CHECK(first_output("halving-doubling", 4) ==
        std::vector<std::string>{"((0.0+1.0)+(2.0+3.0))", "((0.1+1.1)+(2.1+3.1))",
                                 "((0.2+1.2)+(2.2+3.2))", "((0.3+1.3)+(2.3+3.3))"});
}

TEST_CASE("a two-way ring folds one half up the ranks and the other down", "[algorithms]") {
  CHECK(first_output("two-way-ring", 3) ==
        std::vector<std::string>{"((0.0+1.0)+2.0)", "((0.1+2.1)+1.1)", "((1.2+2.2)+0.2)",
                                 "((1.3+0.3)+2.3)", "((2.4+0.4)+1.4)", "((2.5+1.5)+0.5)"});
}
