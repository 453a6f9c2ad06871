// SPDX-License-Identifier: Apache-2.0
#include "plan/verify.h"

#include <string>

#include "support/catch.h"
#include "support/verdicts.h"

using namespace khoro;
using test::found;
using test::plan_of;
using test::proved;
using test::replaced;
using test::ring2;

TEST_CASE("a right plan is proved, by copy and by reference", "[plan]") {
  const Verdict copied = verify(plan_of(ring2), {});
  CHECK(copied.proved());
  CHECK(copied.steps == 6);
  const Verdict lent = verify(plan_of(ring2), {.in_place = true, .references = true});
  CHECK(lent.proved());
  CHECK(lent.steps == 6);
}

TEST_CASE("a contribution that is missing or doubled is named with the step that wrote the chunk",
          "[plan]") {
  const Verdict::Found lacking =
      found(replaced(ring2, " | reduce input[1]", ""),
            {Fault::wrong_value, "rank 0 lane 0 step 1: recv 1 | write output[1] | send 1",
             "output[1] of rank 0 lacks the contribution of rank 0"});
  CHECK(lacking.rank == 0);
  CHECK(lacking.chunk == 1);
  CHECK(lacking.outcome.wrong == std::vector<Outcome::Chunk>{{0, 1}, {1, 1}});
  CHECK_FALSE(lacking.outcome.hangs);
  CHECK(lacking.at == StepAt{0, 0, 0, 1});
  CHECK(lacking.diagnostic.line == 5);

  // What was doubled early is found where it was doubled, not where it came out.
  const std::string doubled =
      replaced(ring2, "read input[1] | send 0", "read input[1] | reduce input[1] | send 0");
  found(doubled,
        {Fault::wrong_value, "rank 1 lane 0 step 0: read input[1] | reduce input[1] | send 0",
         "output[1] of rank 0 holds the contribution of rank 1 twice"});
  found(replaced(doubled, " | reduce input[1] | write", " | write"),
        {Fault::wrong_value, "rank 1 lane 0 step 0: read input[1] | reduce input[1] | send 0",
         "output[1] of rank 0 lacks the contribution of rank 0 and holds the contribution of rank "
         "1 twice"});
}

TEST_CASE("values of other chunks are found by the first step that mixes or misplaces them",
          "[plan]") {
  const Verdict::Found mixed =
      found(replaced(ring2, "reduce input[1]", "reduce input[0]"),
            {Fault::wrong_value,
             "rank 0 lane 0 step 1: recv 1 | reduce input[0] | write output[1] | send 1",
             "folds chunk 0 into chunk 1"});
  CHECK(mixed.outcome.wrong == std::vector<Outcome::Chunk>{{0, 1}, {1, 1}});
  CHECK(mixed.rank == 0);
  CHECK(mixed.chunk == 1);
  found(replaced(ring2, "recv 1 | write output[0]", "recv 1 | write output[1]"),
        {Fault::wrong_value, "rank 0 lane 0 step 2: recv 1 | write output[1]",
         "writes chunk 0 to output[1]"});
  found(R"(plan allgather.x ranks 2 chunks 2
rank 0
  lane 0
    read input[0] | write output[1] | send 1
    recv 1 | write output[0]
rank 1
  lane 0
    read input[0] | write output[1] | send 0
    recv 0 | write output[0]
)",
        {Fault::wrong_value, "rank 0 lane 0 step 1: recv 1 | write output[0]",
         "output[0] of rank 0 holds chunk 0 of rank 1, and must hold chunk 0 of rank 0"});
}

TEST_CASE("an output that is not written, or memory read before it is, is a fault", "[plan]") {
  found(replaced(ring2, "recv 1 | write output[0]", "recv 1"),
        {Fault::wrong_value, "rank 0", "output[0] of rank 0 is never written"});
  found(replaced(ring2, "read input[0] | send 1", "read output[0] | send 1"),
        {Fault::wrong_value, "rank 0 lane 0 step 0: read output[0] | send 1",
         "reads output[0], where nothing has been written"});
  found(replaced(ring2, "read input[0] | send 1", "read scratch[7] | send 1"),
        {Fault::wrong_value, "rank 0 lane 0 step 0: read scratch[7] | send 1",
         "reads scratch[7], where nothing has been written"});
}

TEST_CASE("an average is divided once, at its end, and a sum never", "[plan]") {
  const std::string head = "plan allreduce.x ranks 1 chunks 1";
  const auto one = [&](const std::string& average, const std::string& step) {
    return head + average + "\nrank 0\n  lane 0\n    " + step + "\n";
  };
  proved(one(" average", "read input[0] | scale | write output[0]"));
  found(one(" average", "read input[0] | write output[0]"),
        {Fault::wrong_value, "rank 0 lane 0 step 0: read input[0] | write output[0]",
         "output[0] of rank 0 is not divided by the number of ranks"});
  found(one("", "read input[0] | scale | write output[0]"),
        {Fault::wrong_value, "rank 0 lane 0 step 0: read input[0] | scale | write output[0]",
         "output[0] of rank 0 is divided by the number of ranks, which nobody asked for"});
  const std::string twice = one(" average",
                                "read input[0] | scale | write scratch[0]\n"
                                "    read scratch[0] | scale | write output[0]");
  found(twice,
        {Fault::wrong_value, "rank 0 lane 0 step 1: read scratch[0] | scale | write output[0]",
         "divides a value that has been divided already"});
  // Halves of a sum, each divided, would give the right number in a field, not among integers.
  std::string halves = replaced(ring2, "chunks 2", "chunks 2 average");
  halves = replaced(halves, "read input[0] | send 1", "read input[0] | scale | send 1");
  found(halves, {Fault::wrong_value,
                 "rank 1 lane 0 step 1: recv 0 | reduce input[0] | write output[0] | send 0",
                 "folds a value that has been divided already"});
}

TEST_CASE("a factor of each rank acts on its own contribution, once, on all or on none", "[plan]") {
  std::string all = ring2;
  for (const char* span : {"read input[0]", "read input[1]", "reduce input[0]", "reduce input[1]"})
    all = replaced(all, span, span + std::string("*"));
  proved(all, {.in_place = true});
  found(replaced(all, "reduce input[1]*", "reduce input[1]"),
        {Fault::wrong_value,
         "rank 0 lane 0 step 1: recv 1 | reduce input[1] | write output[1] | send 1",
         "output[1] of rank 0 holds (1*'+0)'\", where each rank's own factor (*) must act once"});
}

TEST_CASE("folds in different orders are shown as the two trees", "[plan]") {
  const std::string text = R"(plan allreduce.x ranks 2 chunks 1
rank 0
  lane 0
    read input[0] | send 1
    read input[0] | reduce recv 1 | write output[0]
rank 1
  lane 0
    read input[0] | send 0
    read input[0] | reduce recv 0 | write output[0]
)";
  const Verdict::Found unequal = found(
      text, {Fault::unequal_order,
             "rank 1 lane 0 step 1: read input[0] | reduce recv 0 | write output[0]",
             "output[0] of rank 1 is folded as (1+0)'\", and as (0+1)'\" on a lower rank (' and \" "
             "mark roundings)"});
  CHECK(unequal.outcome.unequal == std::vector<Outcome::Chunk>{{1, 0}});
  CHECK(unequal.outcome.wrong.empty());
  proved(replaced(text, "read input[0] | reduce recv 0", "recv 0 | reduce input[0]"));
}

TEST_CASE("a rounding more on one rank is an unequal order", "[plan]") {
  const std::string text = R"(plan allreduce.x ranks 3 chunks 1
rank 0
  lane 0
    read input[0] | send 1 | send 2
    read input[0] | reduce recv 1 | write scratch[0]
    read scratch[0] | reduce recv 2 | write output[0]
rank 1
  lane 0
    read input[0] | send 0 | send 2
    recv 0 | reduce input[0] | reduce recv 2 | write output[0]
rank 2
  lane 0
    read input[0] | send 0 | send 1
    recv 0 | reduce recv 1 | reduce input[0] | write output[0]
)";
  found(text, {Fault::unequal_order,
               "rank 1 lane 0 step 1: recv 0 | reduce input[0] | reduce recv 2 | write output[0]",
               "output[0] of rank 1 is folded as ((0+1)+2)'\", and as ((0+1)'+2)'\" on a lower "
               "rank (' and \" mark roundings)"});
}

TEST_CASE("a wait without end is shown as the cycle, or as the lane that has ended", "[plan]") {
  const Verdict::Found cycle = found(
      ring2,
      {Fault::deadlock, "rank 0 lane 0 step 1: recv 1 | reduce input[1] | write output[1] | send 1",
       "a cycle of 2 lanes that wait\n"
       "  rank 0 lane 0 step 1: recv 1 | reduce input[1] | write output[1] | send 1 waits for a "
       "free slot to rank 1, which has all 1 full\n"
       "  rank 1 lane 0 step 1: recv 0 | reduce input[0] | write output[0] | send 0 waits for a "
       "free slot to rank 0, which has all 1 full"},
      {.slots = 1});
  CHECK(cycle.outcome.hangs);
  found(replaced(ring2, "write output[1] | send 1", "write output[1]"),
        {Fault::deadlock, "rank 1 lane 0 step 2: recv 0 | write output[1]",
         "waits for a message from rank 0, whose lane 0 has ended"});
  found(
      "plan broadcast.x ranks 2 chunks 1 root 0\nrank 0\n  lane 0\n    read input[0] | write "
      "output[0]\nrank 1\n  lane 0\n    recv 0 | write output[0]\n",
      {Fault::deadlock, "rank 1 lane 0 step 0: recv 0 | write output[0]",
       "waits for a message from rank 0, which rank 0 never brings"});
}

TEST_CASE("what is left over at the end is a fault", "[plan]") {
  const Verdict::Found message =
      found(replaced(ring2, "recv 1 | write output[0]", "recv 1 | write output[0] | send 1"),
            {Fault::left_over, "rank 0 lane 0 end", "1 of its messages to 1.0 is not received"});
  CHECK(message.outcome.left_over);
  const std::string lanes = R"(plan allreduce.x ranks 1 chunks 1
rank 0
  token go = 1
  lane 0
    read input[0] | write output[0] | signal go
)";
  found(lanes,
        {Fault::left_over, "rank 0 lane 0 end", "token go is 2 at the end, and 1 at the start"});
}

TEST_CASE("two lanes that touch a chunk need a token between them", "[plan]") {
  const std::string text = R"(plan allreduce.x ranks 1 chunks 1
rank 0
  token go = 0
  lane 0
    read input[0] | write scratch[0] | signal go
  lane 1
    await go read scratch[0] | write output[0]
)";
  // Within a tile all is in order. The next tile's write is not ordered with this tile's read.
  const Verdict::Found next_tile = found(
      text, {Fault::race, "rank 0 lane 0 step 0: read input[0] | write scratch[0] | signal go",
             "writes scratch[0], and nothing orders it with rank 0 lane 1 step 0: await go read "
             "scratch[0] | write output[0]"});
  CHECK(next_tile.witness == std::vector<StepAt>{{0, 0, 1, 0}, {0, 1, 0, 0}});
  proved(text, {.tiles = 1});
  const std::string both_ways = R"(plan allreduce.x ranks 1 chunks 1
rank 0
  token go = 0
  token free = 1
  lane 0
    await free read input[0] | write scratch[0] | signal go
  lane 1
    await go read scratch[0] | write output[0] | signal free
)";
  proved(both_ways);
  proved(both_ways, {.in_place = true, .references = true, .tiles = 5});
  found(
      replaced(both_ways, "free = 1", "free = 2"),
      {Fault::race, "rank 0 lane 0 step 0: await free read input[0] | write scratch[0] | signal go",
       "writes scratch[0], and nothing orders it with rank 0 lane 1 step 0: await go read "
       "scratch[0] | write output[0] | signal free"});
}

TEST_CASE("messages order two lanes of a rank through another rank", "[plan]") {
  const std::string text = R"(plan broadcast.x ranks 2 chunks 1 root 0
rank 0
  lane 0
    read input[0] | write scratch[0] | send 1.0
    recv 1.2
  lane 1
    recv 1.1 | write output[0]
    read scratch[0] | send 1.2
rank 1
  lane 0
    recv 0.0 | write output[0] | send 0.1
    recv 0.2 | send 0.2
)";
  proved(text);
  const std::string early = replaced(replaced(text, "    recv 1.1 | write output[0]\n", ""),
                                     "lane 1\n    read scratch[0] | send 1.2",
                                     "lane 1\n    read scratch[0] | send 1.2\n    recv 1.1 | write "
                                     "output[0]");
  const Verdict verdict = verify(plan_of(early), {});
  REQUIRE(verdict.found);
  CHECK(verdict.found->diagnostic.message.find("scratch[0]") != std::string::npos);
}

TEST_CASE("a write waits until what a message refers to has been received", "[plan]") {
  const std::string text = R"(plan broadcast.x ranks 2 chunks 1 root 0
rank 0
  lane 0
    read input[0] | write scratch[0] | send 1
    read input[0] | write scratch[0]
    read scratch[0] | write output[0] | send 1.1
rank 1
  lane 0
    recv 0
    recv 0.1 | write output[0]
)";
  proved(text);
  proved(text, {.references = true});
  const std::string crossed = replaced(text, "    recv 0\n    recv 0.1 | write output[0]\n",
                                       "    recv 0.1 | write output[0]\n    recv 0\n");
  proved(crossed);
  found(crossed,
        {Fault::deadlock, "rank 0 lane 0 step 1: read input[0] | write scratch[0]",
         "a cycle of 2 lanes that wait\n  rank 0 lane 0 step 1: read input[0] | write scratch[0] "
         "waits for rank 1 to receive what it was lent\n  rank 1 lane 0 step 0: recv 0.1 | write "
         "output[0] waits for a message from rank 0"},
        {.references = true});
  // Another lane may write before there is a loan to wait for.
  const Verdict unordered =
      verify(plan_of(replaced(text, "    read input[0] | write scratch[0]\n",
                              "  lane 1\n    read input[0] | write scratch[0]\n  lane 2\n")),
             {.references = true});
  REQUIRE(unordered.found);
  CHECK(unordered.found->fault == Fault::race);
}

TEST_CASE("a rank ends when what it lent was received", "[plan]") {
  const std::string text = R"(plan broadcast.x ranks 2 chunks 1 root 0
rank 0
  lane 0
    read input[0] | write output[0] | send 1 | send 1.1
rank 1
  lane 0
    recv 0 | write output[0]
)";
  found(text, {Fault::left_over, "rank 0 lane 0 end", "1 of its messages to 1.1 is not received"});
  const Verdict::Found lent =
      found(text,
            {Fault::deadlock, "rank 0 end",
             "waits for rank 1 to receive what it was lent, which never does"},
            {.references = true});
  CHECK(lent.outcome.hangs);
  CHECK_FALSE(lent.outcome.left_over);
}

TEST_CASE("an offered window is untouchable until it is taken back", "[plan]") {
  const std::string text = R"(plan broadcast.x ranks 2 chunks 2 root 0
rank 0
  lane 0
    read input[0:2] | write output[0:2] | put 1
rank 1
  lane 0
    offer output[0:2] to 0
    take 0
)";
  proved(text);
  proved(text, {.in_place = true, .references = true});
  found(replaced(text, "    take 0", "    read output[0]\n    take 0"),
        {Fault::race, "rank 1 lane 0 step 1: read output[0]",
         "touches output[0] while the window output[0:2] is open"});
  found(replaced(text, "    take 0\n", ""),
        {Fault::left_over, "rank 0 lane 0 end", "1 of its messages to 1.0 is not received"});
  found(replaced(text, "put 1", "send 1"),
        {Fault::pairing, "rank 1 lane 0 step 1: take 0", "takes where rank 0 sent"});
  found(
      replaced(text, "    offer output[0:2] to 0\n    take 0", "    recv 0 | write output[0:2]"),
      {Fault::deadlock, "rank 0 lane 0 step 0: read input[0:2] | write output[0:2] | put 1",
       "a cycle of 2 lanes that wait\n"
       "  rank 0 lane 0 step 0: read input[0:2] | write output[0:2] | put 1 waits for a window of "
       "rank 1\n"
       "  rank 1 lane 0 step 0: recv 0 | write output[0:2] waits for a message from rank 0"});
  found(replaced(text, "offer output[0:2] to 0", "offer output[0] to 0"),
        {Fault::pairing, "rank 0 lane 0 step 0: read input[0:2] | write output[0:2] | put 1",
         "puts 2 chunks into a window of 1"});
}

TEST_CASE("a barrier orders every rank's end after every rank's start", "[plan]") {
  const std::string text = R"(plan barrier.x ranks 3 chunks 0
rank 0
  lane 0
    read input[0:0] | send 1
    recv 2
rank 1
  lane 0
    recv 0
    read input[0:0] | send 2
rank 2
  lane 0
    recv 1
    read input[0:0] | send 0
)";
  const Verdict::Found early =
      found(text, {Fault::no_barrier, "rank 1 end", "may come before rank 2 has started"});
  CHECK(early.outcome.early);
  std::string twice = replaced(text, "    recv 2", "    recv 2\n    read input[0:0] | send 1");
  twice = replaced(twice, "input[0:0] | send 2", "input[0:0] | send 2\n    recv 0");
  proved(replaced(twice, "recv 0\n    read", "recv 0\n    read"));
}
