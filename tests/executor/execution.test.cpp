// SPDX-License-Identifier: Apache-2.0
#include "executor/execution.h"

#include <algorithm>

#include "base/error.h"
#include "support/catch.h"
#include "support/memory_job.h"
#include "support/text_plans.h"

using namespace khoro;
using test::JobCall;
using test::MemoryChannel;
using test::MemoryJob;

namespace {

const std::vector<int> all_ranks{1, 2, 3, 4, 5, 6, 7, 8, 9};

std::size_t least_slots(const Algorithm& algorithm) {
  return static_cast<std::size_t>(algorithm.least_slots);
}

}  // namespace

TEST_CASE("every algorithm gives the bits of its order signature at every small count",
          "[executor]") {
  test::for_each_plan(all_ranks, [](const Algorithm& algorithm, const Plan& plan) {
    MemoryJob job(plan, {least_slots(algorithm), 4096});
    test::for_each_call(plan, {0, 1, 2, 3, 17, 1000},
                        [&](const JobCall& call) { REQUIRE(job.run(call)); });
  });
}

TEST_CASE("slots of a few elements cut a call into many tiles with the same result", "[executor]") {
  test::for_each_plan({2, 3, 5, 8}, [](const Algorithm& algorithm, const Plan& plan) {
    for (std::size_t bytes_of_a_chunk : {16, 100, 400}) {
      const auto widest = static_cast<std::size_t>(plan.widest_message);
      MemoryJob job(plan, {least_slots(algorithm), widest * bytes_of_a_chunk});
      test::for_each_call(plan, {1, 129, 400},
                          [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
  });
}

TEST_CASE("more slots than a plan needs change nothing", "[executor]") {
  test::for_each_plan({2, 4, 7}, [](const Algorithm&, const Plan& plan) {
    MemoryJob job(plan, {8, 256});
    test::for_each_call(plan, {5, 1000}, [&](const JobCall& call) { REQUIRE(job.run(call)); });
  });
}

TEST_CASE("large calls are right too", "[executor]") {
  test::for_each_plan({3}, [](const Algorithm& algorithm, const Plan& plan) {
    MemoryJob job(plan, {least_slots(algorithm), 65'536});
    test::for_each_call(plan, {100'003}, [&](const JobCall& call) {
      if (call.dtype == Dtype::bf16 || call.dtype == Dtype::f64) REQUIRE(job.run(call));
    });
  });
}

TEST_CASE("messages by reference give the same bits, in place and not", "[executor]") {
  ExecutionOptions options;
  options.lending = LendingRule::always(1);
  test::for_each_plan(all_ranks, [&](const Algorithm& algorithm, const Plan& plan) {
    for (std::size_t bytes_of_a_chunk : {16, 512}) {
      const std::size_t slot_bytes =
          bytes_of_a_chunk * std::size_t(std::max(plan.widest_message, 8));
      MemoryJob job(plan, {least_slots(algorithm), slot_bytes, true}, options);
      test::for_each_call(plan, {1, 17, 400}, [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
  });
}

TEST_CASE("a call ends only when the references that it lent are back", "[executor]") {
  const Plan plan = test::plan_from(
      "plan broadcast.once ranks 2 chunks 1 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | write output[0] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0]\n");
  ExecutionOptions options;
  options.lending = LendingRule::always(1);
  MemoryJob job(plan, {2, 65'536, true}, options);
  JobCall call;
  call.count = 5000;
  job.job->start(call);
  Execution& root = job.job->execution(0);
  while (root.advance() == Progress::moved) continue;
  CHECK(root.advance() == Progress::waiting);
  CHECK(root.position().peer == 1);
  while (job.job->execution(1).advance() != Progress::done) continue;
  while (root.advance() == Progress::moved) continue;
  CHECK(root.advance() == Progress::done);
  CHECK(job.job->right(call, 65'536));
}

TEST_CASE("as many references are kept as are lent, whatever steps send them", "[executor]") {
  // Singly to one rank until there is room for one reference more, then one span to both ranks.
  constexpr int room = 2 * 64;
  std::string root = "plan broadcast.often ranks 3 chunks 1 root 0\nrank 0\n  lane 0\n";
  std::string first = "rank 1\n  lane 0\n";
  for (int i = 1; i < room; ++i) {
    root += "    read input[0] | send 1\n";
    first += "    recv 0 | write output[0]\n";
  }
  const Plan plan =
      test::plan_from(root + "    read input[0] | write output[0] | send 1 | send 2\n" + first +
                      "    recv 0 | write output[0]\n"
                      "rank 2\n"
                      "  lane 0\n"
                      "    recv 0 | write output[0]\n");
  ExecutionOptions options;
  options.lending = LendingRule::always(1);
  MemoryJob job(plan, {2 * room, 4096, true}, options);
  JobCall call;
  call.count = 600;
  CHECK(job.run(call));
}

TEST_CASE("what was taken back while it was read goes nowhere", "[executor]") {
  const Plan plan = test::plan_from(
      "plan broadcast.passed_on ranks 3 chunks 1 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | write output[0] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0] | send 2\n"
      "rank 2\n"
      "  lane 0\n"
      "    recv 1 | write output[0]\n");
  ExecutionOptions options;
  options.lending = LendingRule::always(1);
  for (bool withdrawn : {false, true}) {
    MemoryJob job(plan, {2, 65'536, true}, options);
    JobCall call;
    call.count = 500;
    job.job->start(call);
    while (job.job->execution(0).advance() == Progress::moved) continue;
    if (withdrawn) job.network.channel(0, 1, 0).withdraw();
    Execution& reader = job.job->execution(1);
    while (reader.advance() == Progress::moved) continue;
    // Its reference to rank 2 is not back yet.
    for (int i = 0; i < 3; ++i) CHECK(reader.advance() == Progress::waiting);
    CHECK(job.network.channel(1, 2, 0).published() == (withdrawn ? 0 : 1));
    CHECK(job.network.channel(0, 1, 0).sender().released() == (withdrawn ? 0 : 1));
    CHECK(reader.status() == Status::ok);
  }
}

TEST_CASE("what is lent follows the rule", "[executor]") {
  const Plan plan = test::plan_from(
      "plan broadcast.two_ways ranks 3 chunks 1 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | write output[0] | send 2\n"
      "    read input[0] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0]\n"
      "rank 2\n"
      "  lane 0\n"
      "    recv 0 | write output[0]\n");
  ExecutionOptions options;
  options.lending = {.least = 1000, .least_of_results = 2000, .in_place = 2};
  for (bool in_place : {false, true})
    for (std::size_t count : {249, 250, 499, 500, 999, 1000}) {
      MemoryJob job(plan, {2, 65'536, true}, options);
      JobCall call;
      call.count = count;
      call.in_place = in_place;
      job.job->start(call);
      while (job.job->execution(0).advance() == Progress::moved) continue;
      const auto is_lent = [&](int peer) {
        return job.network.channel(0, peer, 0)
            .receiver()
            .try_observe(static_cast<std::uint32_t>(call.seed))
            .message->by_reference;
      };
      INFO(count << (in_place ? " in place" : ""));
      CHECK(is_lent(1) == (count >= 250));
      // In place nothing is written.
      CHECK(is_lent(2) == (in_place ? count >= 250 : count >= 500));
      CHECK(job.job->finish(1));
    }
}

TEST_CASE("memory that a peer still reads is not overwritten", "[executor]") {
  // Rank 0 lends output[0] and then writes it anew; rank 1 reads the first value late.
  const Plan plan = test::late_reader_plan();
  ExecutionOptions options;
  options.lending = LendingRule::always(1);
  for (bool references : {false, true}) {
    MemoryJob job(plan, {2, 4096, references}, options);
    JobCall call;
    call.count = 600;
    job.job->start(call);
    while (job.job->execution(0).advance() == Progress::moved) continue;
    CHECK(job.job->execution(0).advance() == (references ? Progress::waiting : Progress::done));
    CHECK(job.job->finish(1));
    CHECK(job.job->right(call, 4096));
  }
}

TEST_CASE("windows are filled in place, or through a slot where they cannot be reached",
          "[executor]") {
  const Plan plan = test::window_plan();
  for (bool references : {false, true})
    for (std::size_t slot_bytes : {64, 4096}) {
      MemoryJob job(plan, {2, slot_bytes, references});
      test::for_each_call(plan, {1, 2, 100, 1000},
                          [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
}

TEST_CASE("averages go through windows in the carry type", "[executor]") {
  const Plan plan = test::average_window_plan();
  for (bool references : {false, true})
    for (std::size_t slot_bytes : {64, 4096}) {
      MemoryJob job(plan, {2, slot_bytes, references});
      test::for_each_call(plan, {1, 3, 1000}, [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
}

TEST_CASE("spans of several chunks are moved piece by piece", "[executor]") {
  const Plan plan = test::plan_from(
      "plan allgather.wide ranks 3 chunks 6\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0:2] | write output[0:2] | send 1\n"
      "    recv 1 | write output[2:6]\n"
      "rank 1\n"
      "  lane 0\n"
      "    read input[0:2] | write output[2:4]\n"
      "    recv 0 | write output[0:2]\n"
      "    recv 2 | write output[4:6]\n"
      "    read output[2:6] | send 0\n"
      "    read output[0:4] | send 2\n"
      "rank 2\n"
      "  lane 0\n"
      "    read input[0:2] | write output[4:6] | send 1\n"
      "    recv 1 | write output[0:4]\n");
  REQUIRE(plan.widest_message == 4);
  ExecutionOptions options;
  options.lending = LendingRule::always(1);
  for (bool references : {false, true})
    for (std::size_t slot_bytes : {64, 500, 4096}) {
      MemoryJob job(plan, {2, slot_bytes, references}, options);
      test::for_each_call(plan, {1, 2, 33, 100, 1000},
                          [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
}
