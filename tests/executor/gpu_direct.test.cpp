// SPDX-License-Identifier: Apache-2.0

// Kernels that read and write the buffers of other ranks in place of slots, run by threads of the
// host.
#include <array>

#include "support/gpu_job.h"
#include "support/memory_job.h"
#include "support/text_plans.h"

using namespace khoro;
using test::GpuJob;
using test::JobCall;

namespace {

gpu::Layout layout_of(int least_slots, std::uint32_t slot_bytes) {
  gpu::Layout layout;
  layout.slots = static_cast<std::uint32_t>(least_slots);
  layout.slot_bytes = slot_bytes;
  layout.flagged_bytes = 64;
  return layout;
}

/// Everything from so many bytes on.
gpu::Direct from(std::uint64_t bytes) { return {1, bytes, {}}; }

}  // namespace

TEST_CASE("kernels that reach each other's buffers give the bits of every algorithm",
          "[executor][gpu]") {
  test::for_each_plan({1, 2, 3, 5, 8}, [](const Algorithm& algorithm, const Plan& plan) {
    const std::uint64_t least = plan.collective.ranks % 2 == 0 ? 1 : 500;
    GpuJob job(plan, layout_of(algorithm.least_slots, 4096), from(least));
    test::for_each_call(plan, {0, 1, 17, 1000},
                        [&](const JobCall& call) { REQUIRE(job.run(call)); });
  });
}

TEST_CASE("kernels that reach each other's buffers give the same bits in many tiles",
          "[executor][gpu]") {
  test::for_each_plan({2, 3, 6}, [](const Algorithm& algorithm, const Plan& plan) {
    const auto widest = static_cast<std::uint32_t>(plan.widest_message);
    GpuJob job(plan, layout_of(algorithm.least_slots, widest * 112), from(1), Partials::dtype, 3);
    test::for_each_call(plan, {1, 129, 700}, [&](const JobCall& call) { REQUIRE(job.run(call)); });
  });
}

TEST_CASE("the threads of a block read what others lend as one does", "[executor][gpu]") {
  for (const char* name : {"one-shot", "two-shot", "ring", "double-tree"}) {
    const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, name);
    const Plan plan = test::plan_of(algorithm, 4, false);
    GpuJob job(plan, layout_of(algorithm.least_slots, 8192), from(256));
    JobCall call;
    for (std::size_t count : {1, 100, 3000, 20'000})
      for (bool in_place : {false, true}) {
        call.count = count;
        call.in_place = in_place;
        call.misalignment = ++call.seed % 5;
        INFO(test::text(plan, call));
        REQUIRE(job.run_threads(call, 3));
      }
  }
}

TEST_CASE("a kernel lends as much as it has room to remember, and copies the rest",
          "[executor][gpu]") {
  // Each rank has a message under way to each of the others, in one step.
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "one-shot");
  const Plan plan = test::plan_of(algorithm, 48, false);
  GpuJob job(plan, layout_of(algorithm.least_slots, 4096), from(1));
  JobCall call;
  call.count = 100;
  for (int i = 0; i < 3; ++i) {
    ++call.seed;
    REQUIRE(job.run(call));
  }
}

TEST_CASE("windows of a kernel are filled in place, or through a slot", "[executor][gpu]") {
  const Plan sum = test::window_plan();
  const Plan average = test::average_window_plan();
  for (const Plan* plan : {&sum, &average})
    for (std::uint64_t least : {std::uint64_t{1}, std::uint64_t{300}, UINT64_MAX})
      for (std::uint32_t slot_bytes : {64u, 4096u}) {
        GpuJob job(*plan, layout_of(2, slot_bytes), from(least));
        test::for_each_call(*plan, {1, 2, 100, 1000},
                            [&](const JobCall& call) { REQUIRE(job.run(call)); });
      }
}

TEST_CASE("a lane lends nothing that another lane writes", "[executor][gpu]") {
  // Lane 0 could lend output[0], which lane 1 then writes anew. Lanes do not know of each other's
  // loans, so it must be a copy; that rank 1 takes its time shows it.
  const Plan plan = test::plan_from(
      "plan broadcast.two_lanes ranks 2 chunks 2 root 0\n"
      "rank 0\n"
      "  token sent = 0\n"
      "  lane 0\n"
      "    read input[1] | write output[0]\n"
      "    read output[0] | send 1\n"
      "    read input[1] | write output[1] | send 1 | signal sent\n"
      "  lane 1\n"
      "    await sent read input[0] | write output[0] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[1]\n"
      "    recv 0 | write scratch[0]\n"
      "  lane 1\n"
      "    recv 0 | write output[0]\n");
  GpuJob job(plan, layout_of(2, 4096), from(1));
  JobCall call;
  call.count = 640;  // of which both chunks are alike
  // Whatever the order in which lanes are stepped.
  for (call.seed = 1; call.seed <= 200; ++call.seed) REQUIRE(job.run(call));
}

TEST_CASE("memory that a peer's kernel still reads is not overwritten, nor given back",
          "[executor][gpu]") {
  const Plan only_lends = test::plan_from(
      "plan broadcast.lent ranks 2 chunks 1 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | write output[0] | send 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0]\n");
  const Plan overwrites = test::late_reader_plan();
  for (const Plan* plan : {&only_lends, &overwrites}) {
    GpuJob job(*plan, layout_of(2, 4096), from(1));
    JobCall call;
    call.count = 600;
    job.start(call);
    std::atomic<bool> ended{false};
    std::thread lender([&] {
      job.run_one(0, 0, test::LoneThread{});
      ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(ended);
    job.run_one(1, 0, test::LoneThread{});
    lender.join();
    CHECK(job.is_right(call));
  }
}

TEST_CASE("a kernel believes no address of a peer that is not to send any", "[executor][gpu]") {
  const gpu::Layout layout{2, 4096, 64};
  test::GpuChannel channel(layout);
  gpu::End& sender = channel.sender;
  gpu::End& receiver = channel.receiver;
  std::array<std::byte, 64> lent{};
  sender.room = lent.data();
  sender.elsewhere = true;
  gpu::show(sender, {7, lent.size()});
  CHECK(gpu::look_at(receiver, 7) == gpu::Arrival::corrupt);
  CHECK(gpu::look_at(receiver, 8) == gpu::Arrival::mismatch);
  receiver.peer_device = 1;
  REQUIRE(gpu::look_at(receiver, 7) == gpu::Arrival::there);
  CHECK(receiver.room == lent.data());
}
