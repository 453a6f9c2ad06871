// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <string>

#include "plan/verify.h"
#include "support/catch.h"
#include "support/listing.h"

using namespace khoro;

namespace {

/// Rank 0 of two runs these lanes, rank 1 nothing.
Plan plan_of(std::vector<std::vector<Step>> lanes, std::vector<Token> tokens = {}) {
  Plan plan;
  plan.algorithm = "x";
  plan.collective = {CollectiveKind::allreduce, 2};
  plan.chunks = 4;
  plan.widest_message = 4;
  plan.program = test::programs({std::make_shared<const test::RankListing>(
                                     test::RankListing{std::move(tokens), std::move(lanes)}),
                                 std::make_shared<const test::RankListing>()});
  return plan;
}

void malformed(const Plan& plan, const std::string& message, const VerifyOptions& options = {}) {
  const Verdict verdict = verify(plan, options);
  REQUIRE(verdict.found);
  CHECK(name(verdict.found->fault) == "malformed");
  CHECK(verdict.found->outcome.refused);
  CHECK(verdict.found->diagnostic.message == message);
}

void malformed(const Step& step, const std::string& message) {
  malformed(plan_of({{step}}, {{"go", 1}}), message);
}

}  // namespace

TEST_CASE("spans, channels and tokens that do not exist are named", "[plan]") {
  malformed(read(input(3, 5)) | write(output(0, 2)), "chunks [3:5) of input: there are 4");
  malformed(read(input(-1)) | write(output(0)), "chunks [-1:0) of input: there are 4");
  malformed(read(input(2, 1)) | write(output(0)), "chunks [2:1) of input: there are 4");
  malformed(read(input(0)) | write(output(4)), "chunks [4:5) of output: there are 4");
  malformed(read(input(0)) | write(scratch(1 << 20)),
            "chunks [1048576:1048577) of scratch: there are 1048576");
  const std::string others = ": the other ranks are 0..1, indices 0..252";
  malformed(read(input(0)) | send(2), "names channel 2.0" + others);
  malformed(read(input(0)) | send(-1), "names channel -1.0" + others);
  malformed(read(input(0)) | send(0), "names channel 0.0" + others);
  malformed(read(input(0)) | send(1, 253), "names channel 1.253" + others);
  malformed(await(1) | read(input(0)), "names token 1: the rank has 1");
  malformed(read(input(0)) | signal(-1), "names token -1: the rank has 1");
}

TEST_CASE("the stages of a step come in their order", "[plan]") {
  const std::string order =
      "its stages are out of order: await, source, reduce, scale, write, send or put, signal; an "
      "offer comes alone";
  malformed(read(input(0)) | send(1) | write(output(0)), order);
  malformed(read(input(0)) | write(output(0)) | scale(), order);
  malformed(read(input(0)) | scale() | scale() | write(output(0)), order);
  malformed(read(input(0)) | signal(0) | signal(0), order);
  malformed(read(input(0)) | await(0), order);
  malformed(offer(output(0), 1) | send(1), order);
  malformed(read(input(0)) | offer(output(0), 1), order);
  malformed(write(output(0)) | send(1), "begins without a source");
  malformed(await(0) | await(0) | read(input(0)), "awaits token go twice");
  malformed(Step(await(0)), "does nothing: it has no source");
  malformed(Step(reduce(input(0))), "reduces before it has a first source");
  malformed(read(input(0)) | read(input(0)), "has a second source that is not reduced");
  Stage odd = write(output(0));
  odd.flags |= Stage::reduces;
  malformed(read(input(0)) | odd, "reduces something that is no source");
  odd.flags = Stage::premul;
  malformed(read(input(0)) | odd, "applies a factor to something that is no span read");
}

TEST_CASE("a step names a channel once as source and once as sink", "[plan]") {
  malformed(read(input(0)) | send(1) | send(1), "names channel 1.0 twice as sink");
  malformed(recv(1) | reduce(recv(1)), "names channel 1.0 twice as source");
}

TEST_CASE("an end of a channel, and of a token, belongs to one lane", "[plan]") {
  malformed(plan_of({{read(input(0)) | send(1, 0)}, {read(input(0)) | send(1, 0)}}),
            "names channel 1.0 as sink, as lane 0 does: an end belongs to one lane");
  malformed(
      plan_of({{await(0) | read(input(0))}, {await(0) | read(input(0))}}, {{"go", 9}}),
      "awaits token go, as lane 0 does: a token has one lane that signals and one that awaits");
  malformed(
      plan_of({{read(input(0)) | signal(0)}, {read(input(0)) | signal(0)}}, {{"go", 0}}),
      "signals token go, as lane 0 does: a token has one lane that signals and one that awaits");
}

TEST_CASE("spans of one step are equally long, and equal or apart where they are written",
          "[plan]") {
  malformed(read(input(0, 2)) | write(output(0)), "writes 2 chunks to 1");
  malformed(read(input(0, 2)) | reduce(input(0)), "folds 1 chunks into 2");
  malformed(plan_of({{read(input(0, 2)) | write(output(0, 2)),
                      read(output(0, 2)) | write(output(1, 3))}}),
            "writes output[1:3], part of which is read as output[0:2]");
  malformed(read(input(0, 2)) | write(output(0, 2)) | write(output(1, 3)),
            "writes output[0:2] and output[1:3], which overlap");
  malformed(offer(scratch(0, 2), 1), "offers other than one chunk of scratch at a time");
  malformed(plan_of({{read(input(0)) | write(scratch(0)),
                      read(input(0)) | reduce(scratch(0)) | write(scratch(0))}}),
            "writes sums over the shorter elements of scratch that they are made of; give them "
            "chunks of their own");
}

TEST_CASE("a plan whose head makes no sense is refused", "[plan]") {
  const auto with = [](const auto& change) {
    Plan plan = plan_of({});
    change(plan);
    return plan;
  };
  malformed(with([](Plan& plan) { plan.collective.ranks = 0; }), "0 ranks: must be 1..65536");
  malformed(with([](Plan& plan) { plan.chunks = 0; }), "0 chunks: must be at least 1");
  malformed(with([](Plan& plan) { plan.chunks = 1 << 30; }),
            "1073741824 chunks on 2 ranks: too many to prove");
  malformed(with([](Plan& plan) {
              plan.collective.kind = CollectiveKind::allgather;
              plan.chunks = 3;
            }),
            "3 chunks: must be a multiple of the 2 ranks");
  malformed(with([](Plan& plan) {
              plan.collective = {CollectiveKind::broadcast, 2, 2};
            }),
            "root 2: must be 0..1");
  malformed(with([](Plan& plan) { plan.program = nullptr; }), "it has no programs");
  malformed(plan_of({}), "0 slots: must be 1..4096", {.slots = 0});
  malformed(plan_of({}), "0 tiles: must be at least 1", {.tiles = 0});
  malformed(plan_of({}, {{"go", -1}}), "token go starts with -1");
}

TEST_CASE("junk is judged, never a crash", "[plan]") {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  const auto stage = [&] {
    const int first = below(40) == 0 ? below(9) - 4 : below(4);
    Stage stage{static_cast<Verb>(below(10)),
                static_cast<Buffer>(below(3)),
                static_cast<std::uint8_t>(below(6) == 0 ? below(4) : 0),
                static_cast<std::uint8_t>(below(8) == 0 ? below(256) : own_lane),
                below(30) == 0 ? below(9) - 4 : below(3),
                first,
                first + 1};
    if (stage.verb == Verb::read && below(2) == 0) stage.flags |= Stage::reduces;
    return stage;
  };
  const auto rank = [&] {
    test::RankListing listing{{{"a", below(2)}, {"b", below(2)}, {"c", 1}}, {}};
    for (int lane = below(3); lane >= 0; --lane) {
      listing.lanes.emplace_back();
      for (int step = below(4); step >= 0; --step) {
        // Half of the steps begin well, so that some are run.
        Step made = below(2) == 0 ? Step(stage()) : Step(read(input(below(3))));
        for (int more = below(4); more > 0; --more) made.add(stage());
        listing.lanes.back().push_back(made);
      }
    }
    return std::make_shared<const test::RankListing>(std::move(listing));
  };
  int rejected = 0;
  for (int round = 0; round < 20000; ++round) {
    Plan plan;
    plan.collective = {static_cast<CollectiveKind>(below(5)), 3, below(3)};
    plan.chunks = 3;
    plan.widest_message = 2;
    plan.program = test::programs({rank(), rank(), rank()});
    rejected +=
        !verify(plan,
                {.slots = 1 + below(2), .in_place = below(2) == 0, .references = below(2) == 0})
             .proved();
  }
  CHECK(rejected > 19000);
}
