// SPDX-License-Identifier: Apache-2.0

// Plans on virtual GPUs: the driver, streams and kernels as they are on real ones, which are taken
// too where they are.
#include "base/error.h"
#include "device/drivers.h"
#include "support/device_job.h"
#include "support/memory_job.h"
#include "support/virtual_gpus.h"

using namespace khoro;
using test::DeviceJob;
using test::JobCall;

namespace {

gpu::Layout layout_of(const Algorithm& algorithm, std::uint32_t flagged_bytes) {
  gpu::Layout layout;
  layout.slots = static_cast<std::uint32_t>(algorithm.least_slots);
  layout.slot_bytes = 8192;
  layout.flagged_bytes = flagged_bytes;
  return layout;
}

std::unique_ptr<Driver> gpus(std::size_t count, std::uint64_t seed = 0) {
  VirtualMachine machine = test::virtual_gpus(count);
  machine.seed = seed;
  return make_virtual_driver(machine);
}

bool all_reached(const Driver& driver) {
  for (int device = 0; device < driver.devices(); ++device)
    for (int peer = 0; peer < driver.devices(); ++peer)
      if (!driver.reaches(device, peer)) return false;
  return driver.devices() > 0;
}

/// So many virtual GPUs, and the real ones that are here, if they all reach each other.
std::vector<std::unique_ptr<Driver>> all_gpus(std::size_t count) {
  std::vector<std::unique_ptr<Driver>> all;
  for (const DriverRow& row : drivers()) {
    std::string why_not;
    auto driver = open_driver(row.name, {test::virtual_gpus(count)}, why_not);
    if (driver && all_reached(*driver)) all.push_back(std::move(driver));
  }
  return all;
}

void check_algorithm(Driver& driver, const Algorithm& algorithm) {
  const Plan plan = test::plan_of(algorithm, 4, false);
  DeviceJob job(plan, driver, layout_of(algorithm, 1024));
  JobCall call;
  for (std::size_t count : {1, 4097})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      call.dtype = dtype;
      call.count = count;
      call.in_place = !call.in_place;
      call.misalignment = ++call.seed % 5;
      INFO(driver.name() << ": " << test::text(plan, call));
      REQUIRE(job.run(call));
    }
}

}  // namespace

TEST_CASE("GPUs give the bits of every algorithm", "[executor][gpu]") {
  const auto all = all_gpus(4);
  REQUIRE(!all.empty());
  for (const auto& driver : all)
    for (const Algorithm* algorithm : algorithms()) check_algorithm(*driver, *algorithm);
}

TEST_CASE("several ranks share a GPU", "[executor][gpu]") {
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "ring");
  const Plan plan = test::plan_of(algorithm, 6, false);
  for (const auto& driver : all_gpus(2)) {
    DeviceJob job(plan, *driver, layout_of(algorithm, 1024));
    JobCall call;
    for (std::size_t count : {1, 1000, 30'000}) {
      call.count = count;
      ++call.seed;
      INFO(driver->name() << ": " << test::text(plan, call));
      REQUIRE(job.run(call));
    }
  }
}

TEST_CASE("ranks may have different numbers of blocks for the strands of a call",
          "[executor][gpu]") {
  for (const char* name : {"two-shot", "double-tree", "ring"}) {
    const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, name);
    const Plan plan = test::plan_of(algorithm, 4, false);
    for (const auto& driver : all_gpus(4)) {
      DeviceJob job(plan, *driver, layout_of(algorithm, 1024), 5);
      job.narrow();
      JobCall call;
      for (std::size_t count : {1, 5000, 100'000, 20'000}) {
        call.count = count;
        ++call.seed;
        INFO(driver->name() << ": " << test::text(plan, call));
        REQUIRE(job.run(call));
      }
    }
  }
}

TEST_CASE("calls are queued on a stream before the ones before have ended", "[executor][gpu]") {
  const auto driver = gpus(3);
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "two-shot");
  const Plan plan = test::plan_of(algorithm, 3, false);
  const gpu::Layout layout = layout_of(algorithm, 1024);
  test::DeviceNetwork network(*driver, {0, 1, 2}, layout);
  constexpr std::size_t count = 500;
  struct Rank {
    test::DeviceNetworkEnds ends;
    gpu::ControlPage control;
    gpu::DeviceArena arena;
    gpu::DeviceScratch scratch;
    std::unique_ptr<DeviceMemory> values;
    gpu::FusedLaunch calls{arena};
    std::unique_ptr<gpu::DeviceExecution> execution = nullptr;
    std::unique_ptr<DeviceStream> stream = nullptr;
  };
  std::vector<std::unique_ptr<Rank>> ranks;
  const std::vector<std::uint64_t> ones(count, 1);
  CallArguments call;
  call.count = count;
  call.dtype = Dtype::u64;
  for (int i = 0; i < 3; ++i) {
    auto& rank = *ranks.emplace_back(new Rank{
        {network, i}, {*driver, i}, {*driver, i}, {*driver, i}, driver->allocate(i, count * 8)});
    rank.execution = std::make_unique<gpu::DeviceExecution>(
        flatten(plan, i), plan.collective,
        gpu::DeviceSeat{*driver, i, rank.arena, rank.ends, rank.control, rank.scratch});
    rank.stream = driver->make_stream(i);
    rank.stream->copy(rank.values->address(), reinterpret_cast<std::uintptr_t>(ones.data()),
                      count * 8);
  }
  for (auto& rank : ranks) {
    auto* const values = reinterpret_cast<std::byte*>(rank->values->address());
    call.buffers = {values, values};
    for (int k = 0; k < 10; ++k) {
      ++call.digest;
      rank->calls.clear();
      rank->calls.add_in_turn(*rank->execution, call);
      rank->calls.launch(*rank->stream);
    }
    call.digest = 0;
  }
  for (auto& rank : ranks) {
    std::vector<std::uint64_t> result(count);
    rank->stream->copy(reinterpret_cast<std::uintptr_t>(result.data()), rank->values->address(),
                       count * 8);
    rank->stream->synchronize();
    CHECK(rank->control.report().failure == 0);
    CHECK(result == std::vector<std::uint64_t>(count, 59'049));  // 3^10
  }
}

TEST_CASE("kernels that wait for a rank that never comes end when the host says so",
          "[executor][gpu]") {
  const auto driver = gpus(2);
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "one-shot");
  const Plan plan = test::plan_of(algorithm, 2, false);
  DeviceJob job(plan, *driver, layout_of(algorithm, 1024));
  const auto memory = driver->allocate(0, 64);
  CallArguments call;
  auto* const values = reinterpret_cast<std::byte*>(memory->address());
  call.buffers = {values, values};
  call.count = 16;
  for (std::uint32_t digest : {1, 2}) {
    call.digest = digest;
    job.launch(0, call);
  }
  job.control(0).stop();
  job.stream(0).synchronize();
  CHECK(job.control(0).report().stopped != 0);
  CHECK(job.control(0).report().failure == 0);
}

TEST_CASE("memory that a device does not reach is refused before anything runs",
          "[executor][gpu]") {
  const auto driver = gpus(2);
  const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, "one-shot");
  const Plan plan = test::plan_of(algorithm, 2, false);
  DeviceJob job(plan, *driver, layout_of(algorithm, 1024));
  const auto here = driver->allocate(0, 64), elsewhere = driver->allocate(1, 64);
  float on_host[16] = {};
  CallArguments call;
  call.count = 16;
  for (void* buffer :
       {reinterpret_cast<void*>(elsewhere->address()), static_cast<void*>(on_host)}) {
    auto* const bad = static_cast<std::byte*>(buffer);
    auto* const good = reinterpret_cast<std::byte*>(here->address());
    call.buffers = {bad, good};
    CHECK_THROWS_WITH(job.launch(0, call), Catch::Contains("the send buffer"));
    call.buffers = {good, bad};
    CHECK_THROWS_WITH(job.launch(0, call), Catch::Contains("the receive buffer"));
  }
}

TEST_CASE("seeded delays of any block change no bit", "[executor][gpu]") {
  std::uint64_t seed = 1;
  for (const char* name : {"one-shot", "two-shot", "ring", "double-tree", "halving-doubling"}) {
    const Algorithm& algorithm = *find_algorithm(CollectiveKind::allreduce, name);
    const Plan plan = test::plan_of(algorithm, 4, false);
    for (int i = 0; i < 10; ++i) {
      const auto driver = gpus(4, ++seed);
      DeviceJob job(plan, *driver, layout_of(algorithm, i % 2 == 0 ? 0 : 1024));
      JobCall call;
      for (std::size_t count : {7, 5000}) {
        call.count = count;
        call.seed = seed;
        INFO(test::text(plan, call));
        REQUIRE(job.run(call));
      }
    }
  }
}
