// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "executor/runnable.h"
#include "support/catch.h"
#include "support/memory_job.h"

using namespace khoro;
using test::JobCall;
using test::MemoryEnds;
using test::MemoryJob;
using test::MemoryNetwork;

namespace {

/// Rank 1 of a broadcast of one chunk, against a sender played by the test.
struct Victim {
  Victim() : network({2, 4096, false}), ends(network, 1) {
    execution = std::make_unique<Execution>(flatten(plan, 1), plan.collective, ends);
    execution->start({{nullptr, output.data()}, 16, Dtype::f32, Reduction::sum, 7});
  }

  void send(std::size_t bytes, std::uint32_t digest = 7) {
    Sender& sender = network.channel(0, 1, 0).sender();
    std::byte* room = sender.try_acquire(bytes);
    std::memset(room, 1, bytes);
    sender.publish({digest, bytes, Form::dtype});
  }

  Progress run() {
    Progress progress = Progress::moved;
    while (progress == Progress::moved) progress = execution->advance();
    return progress;
  }

  Plan plan = test::plan_from(
      "plan broadcast.once ranks 2 chunks 1 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0]\n");
  MemoryNetwork network;
  MemoryEnds ends;
  std::vector<std::byte> output = std::vector<std::byte>(64);
  std::unique_ptr<Execution> execution;
};

/// What the refusal of a program says; empty if it is not refused.
std::string refusal(std::vector<Stage> stages, int tokens = 0, std::uint32_t first_lane = 0) {
  Image image;
  if (first_lane > 0) image.lanes.push_back({0, first_lane});
  image.lanes.push_back({first_lane, static_cast<std::uint32_t>(stages.size())});
  image.ports = {{1, 0, false}, {1, 0, true}};
  for (const Stage& stage : stages)
    image.port_of_stage.push_back(stage.verb == Verb::send || stage.verb == Verb::put ? 1 : 0);
  image.token_counts.assign(static_cast<std::size_t>(tokens), 0);
  image.chunks = 2;
  image.scratch_chunks = 2;
  image.stages = std::move(stages);
  try {
    check_runnable(image, {CollectiveKind::allreduce, 2, 0, false});
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "";
}

Stage last(Stage stage) {
  stage.flags |= Stage::ends;
  return stage;
}

}  // namespace

TEST_CASE("a message of the expected size is taken", "[executor]") {
  Victim victim;
  CHECK(victim.run() == Progress::waiting);
  victim.send(64);
  CHECK(victim.run() == Progress::done);
  CHECK(victim.output[63] == std::byte{1});
}

TEST_CASE("a message of another size is corrupt and touches nothing", "[executor]") {
  for (std::size_t bytes : {0, 1, 60, 63, 65, 68, 4096}) {
    Victim victim;
    victim.send(bytes);
    CHECK(victim.run() == Progress::failed);
    CHECK(victim.execution->status() == Status::corrupt);
    CHECK(victim.output == std::vector<std::byte>(64));
  }
}

TEST_CASE("a message wider than its plan says is not sent, by reference neither", "[executor]") {
  Plan plan = test::plan_from(
      "plan broadcast.wide ranks 2 chunks 2 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0:2] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0:2]\n");
  plan.widest_message = 1;
  const std::vector<std::byte> input(128);
  for (bool references : {false, true}) {
    INFO("references " << references);
    MemoryNetwork network({2, 64, references});
    MemoryEnds ends(network, 0);
    ExecutionOptions options;
    options.lending = LendingRule::always(1);
    Execution sender(flatten(plan, 0), plan.collective, ends, options);
    sender.start({{input.data(), nullptr}, 32, Dtype::f32, Reduction::sum, 7});
    CHECK(sender.advance() == Progress::failed);
    CHECK(sender.status() == Status::corrupt);
  }
}

TEST_CASE("a message of another call is a mismatch", "[executor]") {
  Victim victim;
  victim.send(64, 8);
  CHECK(victim.run() == Progress::failed);
  CHECK(victim.execution->status() == Status::mismatch);
}

TEST_CASE("a waiting execution says which step waits for whom", "[executor]") {
  Victim victim;
  CHECK(victim.run() == Progress::waiting);
  const Execution::Position position = victim.execution->position();
  CHECK(position.lane == 0);
  CHECK(position.step == 0);
  CHECK(position.peer == 0);
  CHECK(position.receives);
}

TEST_CASE("slots too small for one element of a chunk are refused with the setting's name",
          "[executor]") {
  const Plan plan = test::plan_of(*find_algorithm(CollectiveKind::allreduce, "ring"), 2, false);
  MemoryJob job(plan, {2, 4, false});
  JobCall call;
  call.count = 10;
  call.dtype = Dtype::f64;
  CHECK_THROWS_WITH(job.job->start(call), Catch::Contains("KHORO_SLOT_BYTES"));
}

TEST_CASE("programs that could touch foreign memory are refused", "[executor]") {
  CHECK(refusal({read(input(1)), last(write(output(1)))}).empty());
  CHECK_THAT(refusal({read(input(2)), last(write(output(0)))}), Catch::Contains("of a buffer"));
  CHECK_THAT(refusal({read(input(-1, 1)), last(write(output(0)))}), Catch::Contains("of a buffer"));
  CHECK_THAT(refusal({read(input(1, 0)), last(write(output(0)))}), Catch::Contains("of a buffer"));
  CHECK_THAT(refusal({read(input(0)), last(write(output(2)))}), Catch::Contains("of a buffer"));
  CHECK_THAT(refusal({recv(1, 0), last(write(scratch(2)))}), Catch::Contains("of a buffer"));
  CHECK_THAT(refusal({recv(1, 0), last(write(input(0)))}), Catch::Contains("input is written"));
  CHECK_THAT(refusal({last(offer(input(0), 1, 0))}), Catch::Contains("input is written"));
  CHECK_THAT(refusal({last(offer(scratch(0, 2), 1, 0))}), Catch::Contains("is offered"));
  CHECK_THAT(refusal({read(input(0)), last(signal(0))}), Catch::Contains("token 0"));
}

TEST_CASE("programs that are no sequence of steps are refused", "[executor]") {
  CHECK_THAT(refusal({last(send(1, 0))}), Catch::Contains("grammar"));
  CHECK_THAT(refusal({last(write(output(0)))}), Catch::Contains("grammar"));
  CHECK_THAT(refusal({last(reduce(input(0)))}), Catch::Contains("grammar"));
  CHECK_THAT(refusal({read(input(0)), last(read(input(1)))}), Catch::Contains("grammar"));
  CHECK_THAT(refusal({recv(1, 0), send(1, 0), last(write(output(0)))}), Catch::Contains("grammar"));
  CHECK_THAT(refusal({read(input(0)), last(await(0))}, 1), Catch::Contains("grammar"));
  CHECK_THAT(refusal({last(await(0))}, 1), Catch::Contains("does nothing"));
  CHECK_THAT(refusal({recv(1, 0)}), Catch::Contains("does not end"));
  CHECK(refusal({await(0), await(1), recv(1, 0), last(signal(0))}, 2).empty());
}

TEST_CASE("programs that misuse an end of a channel are refused", "[executor]") {
  CHECK(refusal({recv(1, 0), last(send(1, 0)), recv(1, 0), last(send(1, 0))}).empty());
  CHECK(refusal({recv(1, 0), last(write(output(0))), read(input(0)), last(send(1, 0))}, 0, 2)
            .empty());
  CHECK_THAT(refusal({recv(1, 0), reduce(recv(1, 0)), last(write(output(0)))}),
             Catch::Contains("channel 1.0 is named twice"));
  CHECK_THAT(refusal({read(input(0)), send(1, 0), last(send(1, 0))}),
             Catch::Contains("channel 1.0 is named twice"));
  CHECK_THAT(
      refusal({recv(1, 0), last(write(output(0))), recv(1, 0), last(write(output(1)))}, 0, 2),
      Catch::Contains("channel 1.0 is an end of lane 0"));
}

#ifdef KHORO_TEST_SWITCHES
TEST_CASE("a planted race between lanes gives wrong bits", "[executor]") {
  // The root of each tree joins its lanes by a token; without it the way down overtakes the way up.
  const Plan plan =
      test::plan_of(*find_algorithm(CollectiveKind::allreduce, "double-tree"), 5, false);
  int wrong = 0;
  for (bool planted : {false, true}) {
    ExecutionOptions options;
    options.ignores_tokens = planted;
    for (JobCall call{Dtype::i32, Reduction::sum, 100, false, 0, 1}; call.seed <= 20; ++call.seed) {
      MemoryJob job(plan, {2, 4096}, options);
      const bool right = job.run(call);
      if (!planted) CHECK(right);
      if (planted && !right) ++wrong;
    }
  }
  CHECK(wrong > 0);
}
#endif
