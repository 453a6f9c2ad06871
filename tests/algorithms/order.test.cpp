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

/// "(((0.5+1.5)+2.5)+3.5)"
std::string left_fold(int ranks, int chunk) {
  const std::string part = "." + std::to_string(chunk);
  std::string text = "0" + part;
  for (int rank = 1; rank < ranks; ++rank)
    text = "(" + text + "+" + std::to_string(rank) + part + ")";
  return text;
}

bool folds_in_rank_order(const Plan& plan) {
  const test::Walk walk = test::walk(plan);
  for (int rank = 0; rank < plan.collective.ranks; ++rank)
    for (int chunk = 0; chunk < plan.collective.output_chunks(plan.chunks); ++chunk) {
      const auto need = plan.collective.requirement(rank, chunk, plan.chunks);
      if (need && walk.outputs[std::size_t(rank)][std::size_t(chunk)] !=
                      left_fold(plan.collective.ranks, need->chunk))
        return false;
    }
  return walk.finished;
}

}  // namespace

TEST_CASE("an algorithm folds all it does in rank order from the left, or says that it does not",
          "[algorithms]") {
  for (const Algorithm* algorithm : algorithms()) {
    if (!Collective{algorithm->collective}.reduces()) continue;
    INFO(name(algorithm->collective) << " " << algorithm->name);
    bool always = true;
    for (int ranks = 1; ranks <= 17; ++ranks)
      for (int root = 0; root < (Collective{algorithm->collective}.has_root() ? ranks : 1); ++root)
        always &= folds_in_rank_order(make_plan(*algorithm, {algorithm->collective, ranks, root},
                                                Topology::one_machine(ranks), Shape{}));
    CHECK(always == algorithm->rank_order);
  }
}

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
