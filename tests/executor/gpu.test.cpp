// SPDX-License-Identifier: Apache-2.0

// Plans as kernels run them, by threads of the host.
#include <array>

#include "support/gpu_job.h"
#include "support/memory_job.h"

using namespace khoro;
using test::GpuJob;
using test::JobCall;

namespace {

gpu::Layout layout_of(const Algorithm& algorithm, std::uint32_t slot_bytes,
                      std::uint32_t flagged_bytes) {
  gpu::Layout layout;
  layout.slots = static_cast<std::uint32_t>(algorithm.least_slots);
  layout.slot_bytes = (slot_bytes + 15) / 16 * 16;
  layout.flagged_bytes = flagged_bytes;
  return layout;
}

}  // namespace

TEST_CASE("kernels give the bits of every algorithm's order signature", "[executor][gpu]") {
  test::for_each_plan({1, 2, 3, 5, 8}, [](const Algorithm& algorithm, const Plan& plan) {
    constexpr std::array<std::uint32_t, 3> flagged{0, 64, 4096};
    const auto turn = static_cast<std::size_t>(plan.collective.ranks) % flagged.size();
    GpuJob job(plan, layout_of(algorithm, 4096, flagged[turn]));
    test::for_each_call(plan, {0, 1, 3, 17, 1000},
                        [&](const JobCall& call) { REQUIRE(job.run(call)); });
  });
}

TEST_CASE("kernels give the same bits in many tiles", "[executor][gpu]") {
  test::for_each_plan({2, 3, 6}, [](const Algorithm& algorithm, const Plan& plan) {
    const auto widest = static_cast<std::uint32_t>(plan.widest_message);
    const std::uint32_t bytes_of_a_chunk = plan.collective.ranks % 2 == 0 ? 16 : 112;
    for (const std::uint32_t strands : {1, 3}) {
      GpuJob job(plan, layout_of(algorithm, widest * bytes_of_a_chunk, 64), Partials::dtype,
                 strands);
      test::for_each_call(plan, {1, 129, 700},
                          [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
  });
}

TEST_CASE("kernels fold large and misaligned buffers", "[executor][gpu]") {
  for (const char* name : {"ring", "two-shot"}) {
    const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, name);
    for (bool average : {false, true}) {
      const Plan plan = test::plan_of(algorithm, 3, average);
      GpuJob job(plan, layout_of(algorithm, 65'536, 4096));
      test::for_each_call(plan, {4095, 4096, 4097, 50'003},
                          [&](const JobCall& call) { REQUIRE(job.run(call)); });
    }
  }
}

TEST_CASE("the threads of a block move a lane's data as one does", "[executor][gpu]") {
  for (const char* name : {"one-shot", "two-shot", "ring", "double-tree"}) {
    const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, name);
    const Plan plan = test::plan_of(algorithm, 4, false);
    GpuJob job(plan, layout_of(algorithm, 8192, 1024), Partials::dtype, 2);
    JobCall call;
    for (std::size_t count : {1, 100, 3000, 20'000})
      for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::u8}) {
        call.dtype = dtype;
        call.count = count;
        call.in_place = !call.in_place;
        call.misalignment = ++call.seed % 5;
        INFO(test::text(plan, call));
        REQUIRE(job.run_threads(call, 3));
      }
  }
}

TEST_CASE("the words of a flagged message come in any order", "[executor][gpu]") {
  const gpu::Layout layout{2, 4096, 64};
  test::GpuChannel channel(layout);
  gpu::End& sender = channel.sender;
  gpu::End& receiver = channel.receiver;
  alignas(16) std::byte sent[8] = {std::byte{1}, std::byte{2}}, received[8] = {};
  sender.bytes = sizeof sent;
  sender.flagged = true;
  sender.room = sent;
  gpu::show(sender, {7, sizeof sent});
  // As they lie once all are there, of which one is seen after the other.
  gpu::Head& head = receiver.head(1);
  const gpu::Head whole = head;
  const auto look = [&](std::uint64_t first, std::uint64_t second) {
    head = {first, second};
    return gpu::look_at(receiver, 7);
  };
  CHECK(look(0, 0) == gpu::Arrival::waits);
  CHECK(look(whole.first, 0) == gpu::Arrival::waits);
  CHECK(look(0, whole.second) == gpu::Arrival::waits);
  REQUIRE(look(whole.first, whole.second) == gpu::Arrival::there);
  receiver.room = received;
  const auto take = [&] { return gpu::take_in(test::LoneThread{}, receiver, [] { return true; }); };
  CHECK_FALSE(take());
  --sender.number;
  gpu::send_out(test::LoneThread{}, sender);
  REQUIRE(take());
  CHECK(std::equal(std::begin(sent), std::end(sent), std::begin(received)));
}

TEST_CASE("a flag of 2^32 messages ago is not taken for a new one", "[executor][gpu]") {
  const gpu::Layout layout{2, 4096, 64};
  test::GpuChannel channel(layout);
  gpu::End& sender = channel.sender;
  gpu::End& receiver = channel.receiver;
  alignas(16) std::byte sent[64] = {}, received[64] = {};
  // Whether all of a message came, of which the words after `there` bytes are still under way.
  const auto pass = [&](std::uint64_t number, std::uint32_t bytes, std::uint32_t there) {
    sender.number = receiver.number = number - 1;
    sender.bytes = there;
    sender.flagged = true;
    sender.room = sent;
    gpu::send_out(test::LoneThread{}, sender);
    sender.bytes = bytes;
    gpu::show(sender, {7, bytes});
    REQUIRE(gpu::look_at(receiver, 7) == gpu::Arrival::there);
    receiver.room = received;
    return gpu::take_in(test::LoneThread{}, receiver, [] { return true; });
  };
  for (std::uint64_t number : {1, 2}) REQUIRE(pass(number, 64, 64));
  // Short ones from then on.
  for (std::uint64_t turn = 1; turn <= 2; ++turn)
    for (std::uint64_t number : {0, 1})
      REQUIRE(pass(turn * gpu::flags_renewed_every + number, 4, 4));
  const std::uint64_t same_low_bits = 2 * gpu::flags_renewed_every + 2;
  CHECK_FALSE(pass(same_low_bits, 64, 4));
  CHECK(pass(same_low_bits, 64, 64));
}

TEST_CASE("a kernel ends when the host wants it to", "[executor][gpu]") {
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "one-shot");
  const Plan plan = test::plan_of(algorithm, 2, false);
  GpuJob job(plan, layout_of(algorithm, 4096, 1024));
  JobCall call;
  call.count = 10;
  job.start(call);
  std::thread stuck([&] { job.run_one(0, 0, test::LoneThread{}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  publish_alone(job.stop, 1u);
  stuck.join();
  CHECK(job.report(0).stopped != 0);
  CHECK(job.report(0).failure == 0);
}

TEST_CASE("a kernel tells a message of another call", "[executor][gpu]") {
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "one-shot");
  const Plan plan = test::plan_of(algorithm, 2, false);
  GpuJob job(plan, layout_of(algorithm, 4096, 1024));
  job.digest_of_rank_0 = 1;
  JobCall call;
  call.count = 10;
  CHECK_FALSE(job.run_threads(call, 1));
  for (int rank : {0, 1})
    CHECK(job.report(rank).failure == 1 + static_cast<std::uint32_t>(Status::mismatch));
}
