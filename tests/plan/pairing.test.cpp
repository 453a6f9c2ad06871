// SPDX-License-Identifier: Apache-2.0
// Messages of other sizes than the steps at their ends name.
#include <string>

#include "plan/verify.h"
#include "support/catch.h"
#include "support/verdicts.h"

using namespace khoro;
using test::found;
using test::plan_of;
using test::replaced;

TEST_CASE("messages of another size than the receiving step asks for are a fault", "[plan]") {
  const std::string text = R"(plan broadcast.x ranks 2 chunks 2 root 0
rank 0
  lane 0
    read input[0:2] | write output[0:2] | send 1
rank 1
  lane 0
    recv 0 | write output[0]
)";
  const Verdict::Found size = found(
      text,
      {Fault::pairing, "rank 1 lane 0 step 0: recv 0 | write output[0]", "writes 2 chunks to 1"});
  CHECK(size.outcome.refused);
  Plan narrow = plan_of(replaced(text, "output[0]\n", "output[0:2]\n"));
  narrow.widest_message = 1;
  found(narrow, {},
        {Fault::malformed, "rank 0 lane 0 step 0: read input[0:2] | write output[0:2] | send 1",
         "sends 2 chunks: the widest message of the plan has 1"});
}

TEST_CASE("sizes that do not fit are seen before a step waits for room", "[plan]") {
  const std::string text = R"(plan allgather.x ranks 2 chunks 2
rank 0
  lane 0
    read input[0] | write output[0] | send 1
    recv 1 | write output[0:2]
rank 1
  lane 0
    read input[0] | send 0
    recv 0.1 | write output[0]
)";
  const VerifyOptions by_reference{.references = true};
  const Verdict::Found over_lent = found(
      text,
      {Fault::pairing, "rank 0 lane 0 step 1: recv 1 | write output[0:2]", "writes 1 chunks to 2"},
      by_reference);
  CHECK(over_lent.outcome.refused);
  const Verdict::Found lent =
      found(replaced(text, "output[0:2]", "output[0]"),
            {Fault::deadlock, "rank 0 lane 0 step 1: recv 1 | write output[0]",
             "waits for rank 1 to receive what it was lent, which rank 1 never brings"},
            by_reference);
  CHECK(lent.outcome.hangs);
  Plan wide = plan_of(replaced(text, "recv 1 | write output[0:2]", "read output[0:2] | send 1"));
  wide.widest_message = 1;
  const Verdict::Found without_slot =
      found(wide, {.slots = 1},
            {Fault::malformed, "rank 0 lane 0 step 1: read output[0:2] | send 1",
             "sends 2 chunks: the widest message of the plan has 1"});
  CHECK(without_slot.outcome.refused);
}
