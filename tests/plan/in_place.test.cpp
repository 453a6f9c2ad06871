// SPDX-License-Identifier: Apache-2.0
// What a proof knows of memory that is input and output at once.
#include <fmt/format.h>

#include "plan/text.h"
#include "plan/verify.h"
#include "support/catch.h"

using namespace khoro;

namespace {

/// An allgather of two ranks, the first of which sends `source` without having written it.
Verdict verdict_of(const std::string& source, bool in_place) {
  const Parsed parsed = parse(fmt::format(R"(plan allgather.bare ranks 2 chunks 2
rank 0
  lane 0
    read {} | send 1
    read input[0] | write output[0]
    recv 1 | write output[1]
rank 1
  lane 0
    read input[0] | write output[1] | send 0
    recv 0 | write output[0]
)",
                                          source));
  REQUIRE(parsed.plan);
  return verify(*parsed.plan, {.in_place = in_place, .references = true});
}

}  // namespace

TEST_CASE("in place, the rank's block of an output holds the input until it is written", "[plan]") {
  CHECK(verdict_of("output[0]", true).proved());
  const Verdict apart = verdict_of("output[0]", false);
  REQUIRE(apart.found);
  CHECK(name(apart.found->fault) == "wrong value");
  CHECK(apart.found->diagnostic.message == "reads output[0], where nothing has been written");
}

TEST_CASE("in place, nothing lies where the blocks of other ranks go", "[plan]") {
  const Verdict verdict = verdict_of("output[1]", true);
  REQUIRE(verdict.found);
  CHECK(name(verdict.found->fault) == "wrong value");
  CHECK(verdict.found->diagnostic.message == "reads output[1], where nothing has been written");
}
