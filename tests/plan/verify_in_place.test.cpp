// SPDX-License-Identifier: Apache-2.0
// Proofs of calls whose output lies over their input.
#include "support/verdicts.h"

using namespace khoro;
using test::found;
using test::proved;
using test::replaced;
using test::ring2;

TEST_CASE("the input stays as it is, and in place it is not read once overwritten", "[plan]") {
  found(replaced(ring2, "write output[0] | send 0", "write input[0] | send 0"),
        {Fault::input_written,
         "rank 1 lane 0 step 1: recv 0 | reduce input[0] | write input[0] | send 0",
         "writes into the input"});
  const std::string late = R"(plan allreduce.x ranks 2 chunks 1
rank 0
  lane 0
    read input[0] | send 1
    read input[0] | reduce recv 1 | write output[0]
    read input[0]
rank 1
  lane 0
    read input[0] | send 0
    recv 0 | reduce input[0] | write output[0]
)";
  proved(late);
  found(late,
        {Fault::input_written, "rank 0 lane 0 step 2: read input[0]",
         "reads input[0], overwritten in place through output[0]"},
        {.in_place = true});
}

TEST_CASE("in place allgather and reducescatter lay one buffer over a block of the other",
          "[plan]") {
  const std::string gather = R"(plan allgather.x ranks 2 chunks 4
rank 0
  lane 0
    read input[0:2] | write output[0:2] | send 1
    recv 1 | write output[2:4]
rank 1
  lane 0
    read input[0:2] | write output[2:4] | send 0
    recv 0 | write output[0:2]
)";
  proved(gather, {.in_place = true, .references = true});
  // Rank 1's input is output[2:4]: moved by one it would be copied onto itself.
  std::string moved = gather;
  moved = replaced(moved, "read input[0:2] | write output[2:4] | send 0",
                   "read input[0:2] | write output[1:3] | send 0");
  found(moved,
        {Fault::malformed, "rank 1 lane 0 step 0: read input[0:2] | write output[1:3] | send 0",
         "writes output[1:3], part of which is read as input[0:2]"},
        {.in_place = true});
}

TEST_CASE("in place, what lies there already need not be written", "[plan]") {
  const std::string unwritten = R"(plan broadcast.bare ranks 2 chunks 1 root 0
rank 0
  lane 0
    read input[0] | send 1
rank 1
  lane 0
    recv 0 | write output[0]
)";
  proved(unwritten, {.in_place = true});
  found(unwritten, {Fault::wrong_value, "rank 0", "output[0] of rank 0 is never written"});
  found(replaced(unwritten, "root 0", "root 1"),
        {Fault::malformed, "rank 0 lane 0 step 0: read input[0] | send 1",
         "reads the input of a rank that has none: the root is 1"},
        {.in_place = true});
}

TEST_CASE("in place, an output holds the input until it is written", "[plan]") {
  const std::string gather = R"(plan allgather.bare ranks 2 chunks 2
rank 0
  lane 0
    read output[0] | send 1
    recv 1 | write output[1]
rank 1
  lane 0
    read output[1] | send 0
    recv 0 | write output[0]
)";
  proved(gather, {.in_place = true, .references = true});
  found(gather, {Fault::wrong_value, "rank 0 lane 0 step 0: read output[0] | send 1",
                 "reads output[0], where nothing has been written"});
  // Of another rank's block nothing lies there.
  found(replaced(gather, "read output[0] | send 1", "read output[1] | send 1"),
        {Fault::wrong_value, "rank 0 lane 0 step 0: read output[1] | send 1",
         "reads output[1], where nothing has been written"},
        {.in_place = true});
}
