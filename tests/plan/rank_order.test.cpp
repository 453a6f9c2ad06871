// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "plan/text.h"
#include "plan/verify.h"
#include "support/catch.h"

using namespace khoro;

namespace {

/// What is stored or sent in between is of the accumulator's type: its rounding does not count.
std::string chain(const std::string& asked, const std::string& of_rank_1,
                  const std::string& scale) {
  return "plan reduce.x ranks 3 chunks 1 root 2" + asked +
         "\nrank 0\n  lane 0\n    read input[0] | send 1\nrank 1\n  lane 0\n    " + of_rank_1 +
         " | send 2\nrank 2\n  lane 0\n    recv 1 | reduce input[0]" + scale +
         " | write output[0]\n";
}

Verdict judge(const std::string& text) {
  const Parsed parsed = parse(text);
  REQUIRE(parsed.plan.has_value());
  return verify(*parsed.plan, {});
}

constexpr auto in_order = "recv 0 | reduce input[0]";
constexpr auto out_of_order = "read input[0] | reduce recv 0";

}  // namespace

TEST_CASE("rank order, where it is asked for, is a left fold that begins with rank 0", "[plan]") {
  CHECK(judge(chain(" rank-order", in_order, "")).proved());
  CHECK(judge(chain(" average rank-order", in_order, " | scale")).proved());
  CHECK(judge(chain("", out_of_order, "")).proved());
  const Verdict verdict = judge(chain(" rank-order", out_of_order, ""));
  REQUIRE(verdict.found);
  CHECK(name(verdict.found->fault) == "wrong order");
  CHECK(verdict.found->diagnostic.message ==
        "output[0] of rank 2 is folded as ((1+0)+2)\", and must be folded from the left in rank "
        "order");
  CHECK(verdict.found->outcome.unequal == std::vector<Outcome::Chunk>{{2, 0}});
  CHECK(verdict.found->outcome.wrong.empty());
}

TEST_CASE("factors that were asked for act on every contribution", "[plan]") {
  const std::string text = R"(plan allreduce.x ranks 1 chunks 1 premul
rank 0
  lane 0
    read input[0]* | write output[0]
)";
  CHECK(judge(text).proved());
  std::string forgotten = text;
  forgotten.erase(forgotten.find('*'), 1);
  const Verdict verdict = judge(forgotten);
  REQUIRE(verdict.found);
  CHECK(verdict.found->fault == Fault::wrong_value);
}
