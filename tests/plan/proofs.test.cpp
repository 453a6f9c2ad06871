// SPDX-License-Identifier: Apache-2.0
#include "plan/proofs.h"

#include "plan/text.h"
#include "support/catch.h"

using namespace khoro;

namespace {

// In place, each rank's sum overwrites the input that it has lent to the other, and so waits for
// the other's sum.
const char* const exchange =
    "plan allreduce.exchange ranks 2 chunks 1\n"
    "rank 0\n  lane 0\n    read input[0] | send 1\n"
    "    read input[0] | reduce recv 1 | write output[0]\n"
    "rank 1\n  lane 0\n    read input[0] | send 0\n"
    "    recv 0 | reduce input[0] | write output[0]\n";

Plan plan_of(std::string text) { return std::move(*parse(text).plan); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("a plan is proved in all four modes, and each failure says in which", "[plan]") {
  const Proofs proofs = prove(plan_of(exchange), 2);
  CHECK(proofs.made == 4);
  CHECK(proofs.steps > 0);
  REQUIRE(proofs.failures.size() == 1);
  CHECK(proofs.failures[0].options.in_place);
  CHECK(proofs.failures[0].options.references);
  CHECK(proofs.failures[0].options.slots == 2);
}

TEST_CASE("a plan that lends no input in place is proved without that", "[plan]") {
  Plan plan = plan_of(exchange);
  plan.lends_in_place = false;
  const Proofs proofs = prove(plan, 2);
  CHECK(proofs.made == 4);
  CHECK(proofs.failures.empty());
}

TEST_CASE("a plan that fails only by lending in place is admitted without", "[plan]") {
  Plan plan = plan_of(exchange);
  CHECK(admit(plan, 2).failures.empty());
  CHECK_FALSE(plan.lends_in_place);
}

TEST_CASE("what a plan lends beside its input is proved in place too", "[plan]") {
  // What is lent out of scratch must be back before the write that the receiver waits for.
  const std::string text =
      "plan broadcast.x ranks 2 chunks 1 root 0\n"
      "rank 0\n  lane 0\n    read input[0] | write scratch[0] | send 1\n"
      "    read scratch[0] | write scratch[0] | write output[0] | send 1.1\n"
      "rank 1\n  lane 0\n    recv 0.1 | write output[0]\n    recv 0\n";
  Plan plan = plan_of(text);
  plan.lends_in_place = false;
  CHECK(prove(plan, 2).failures.size() == 2);
  CHECK(admit(plan, 2).failures.size() == 2);
}

TEST_CASE("a plan that fails otherwise is not admitted", "[plan]") {
  Plan plan = plan_of(replaced(exchange, "read input[0] | reduce recv 1", "recv 1"));
  CHECK_FALSE(admit(plan, 2).failures.empty());
  CHECK(plan.lends_in_place);
}
