// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_residency.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "base/error.h"
#include "conformance/driver.h"
#include "executor/gpu/call.h"
#include "executor/gpu/kernel.h"
#include "support/virtual_gpus.h"

using namespace khoro;

namespace {

/// A GPU that runs ten blocks at once.
struct Gpu {
  Gpu() {
    VirtualMachine machine = test::virtual_gpus(1);
    machine.resident_blocks = 10;
    driver = make_virtual_driver(machine);
    residency = GpuResidency::of(*driver, 0);
  }
  Launch launch(int blocks) const {
    Launch launch;
    launch.kernel = &driver->kernel(0, gpu::kernel_image(), gpu::kernel_name);
    launch.blocks = blocks;
    return launch;
  }

  std::unique_ptr<Driver> driver;
  std::shared_ptr<GpuResidency> residency;
};

/// A rank of a communicator, with a stream.
struct Rank {
  Rank(const Gpu& its, std::uint64_t communicator, int ranks)
      : gpu(its),
        member(its.residency, communicator, ranks),
        ended(its.driver->make_event(0)),
        stream(its.driver->make_stream(0)) {}

  /// Queues a launch, of which nothing but `work` is left, and says how many blocks it would have.
  int granted(
      int blocks, int least, std::function<void()> work = [] {}) {
    GpuResidency::Turn turn = member.enter(gpu.launch(blocks), least, *stream);
    stream->call(std::move(work));
    stream->record(*ended);
    turn.launched(ended);
    return turn.blocks();
  }
  void launch(
      int blocks, std::function<void()> work = [] {}) {
    const int got = granted(blocks, blocks, std::move(work));
    CHECK(got == blocks);
  }
  void refuse(int blocks, const char* words) {
    try {
      launch(blocks);
      FAIL("it was launched");
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_usage);
      CHECK_THAT(error.what(), Catch::Contains(words));
    }
  }

  const Gpu& gpu;
  GpuResidency::Member member;
  std::shared_ptr<DeviceEvent> ended;
  std::unique_ptr<DeviceStream> stream;
};

}  // namespace

TEST_CASE("blocks of all ranks of a communicator have places on their GPU", "[communicator]") {
  const Gpu gpu;
  Rank first(gpu, 1, 2), second(gpu, 1, 2);
  first.launch(5);
  second.launch(5);
  first.launch(3);
  first.refuse(6, "6 blocks of each of 2 ranks on virtual GPU 0, which runs 10 at once");
  second.launch(5);
  second.launch(0);
}

TEST_CASE("communicators of several ranks on a GPU are counted together", "[communicator]") {
  const Gpu gpu;
  Rank first(gpu, 2, 2);
  {
    Rank one(gpu, 1, 2), other(gpu, 1, 2);
    one.launch(1);
    other.launch(3);
    first.launch(2);
    first.refuse(3, "has to keep 6 for other communicators");
  }
  first.launch(5);
}

TEST_CASE("those of one rank on a GPU have the places that others leave", "[communicator]") {
  const Gpu gpu;
  Rank shared(gpu, 1, 2), alone(gpu, 2, 1);
  shared.launch(3);
  alone.refuse(5,
               "5 blocks of the rank on virtual GPU 0, which runs 10 at once, and has to keep 6");
  alone.launch(4);
  shared.refuse(4, "has to keep 4");
}

TEST_CASE("launches that can do with fewer blocks get what is left", "[communicator]") {
  const Gpu gpu;
  Rank shared(gpu, 1, 2), other(gpu, 2, 2);
  CHECK(shared.granted(1, 1) == 1);
  CHECK(shared.granted(8, 1) == 2);  // half of the GPU, for two
  CHECK(other.granted(8, 1) == 1);   // half of what is left, but one at least
  CHECK(shared.granted(8, 4) == 4);
  other.refuse(2, "has to keep 8");

  const Gpu another;
  Rank first(another, 1, 1), second(another, 2, 1), third(another, 3, 1);
  conformance::Gate gate;
  CHECK(first.granted(8, 1, gate.wait()) == 4);   // half of the GPU but for two that may come
  CHECK(second.granted(8, 1, gate.wait()) == 2);  // half of what is left but for one
  CHECK(third.granted(8, 1) == 2);
  CHECK(third.granted(8, 3) == 3);
  third.stream->synchronize();  // beside the others
  gate.open();
  first.stream->synchronize();
  second.stream->synchronize();
  CHECK(third.granted(20, 1) == 4);
  CHECK(third.granted(20, 9) == 9);
}

TEST_CASE("no communicator of one rank on a GPU has to wait for what others could do without",
          "[communicator]") {
  const Gpu gpu;
  std::deque<Rank> ranks;
  for (std::uint64_t i = 0; i < 10; ++i) ranks.emplace_back(gpu, i, 1);
  conformance::Gate gate;
  std::atomic<int> run = 0;
  for (Rank& rank : ranks)
    CHECK(rank.granted(10, 1, [&run, wait = gate.wait()] {
      ++run;
      wait();
    }) == 1);
  while (run < 10) std::this_thread::yield();  // else it hangs
  ranks.emplace_back(gpu, 10, 1);
  std::atomic<bool> ran = false;
  CHECK(ranks.back().granted(1, 1, [&] { ran = true; }) == 1);  // the eleventh waits
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!ran);
  gate.open();
  ranks.back().stream->synchronize();
  CHECK(ran);
}

TEST_CASE("who is kept from launching keeps others only where these must wait", "[communicator]") {
  const Gpu gpu;
  Rank slow(gpu, 1, 1), beside(gpu, 2, 1), after(gpu, 3, 1);
  std::atomic<bool> launched = false;
  std::thread late;
  {
    GpuResidency::Turn turn = slow.member.enter(gpu.launch(6), 6, *slow.stream);
    beside.launch(4);
    late = std::thread([&] {
      after.launch(5);
      launched = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(!launched);
  }  // it was not launched
  late.join();
  CHECK(launched);
  after.stream->synchronize();
  after.launch(10);
}

TEST_CASE("a launch of several ranks waits for those that take turns, and is not refused",
          "[communicator]") {
  const Gpu gpu;
  Rank alone(gpu, 1, 1), shared(gpu, 2, 2);
  conformance::Gate gate;
  std::atomic<bool> ran = false;
  CHECK(alone.granted(8, 1, gate.wait()) == 5);
  CHECK(shared.granted(4, 4, [&] { ran = true; }) == 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!ran);
  gate.open();
  shared.stream->synchronize();
  CHECK(ran);
  CHECK(alone.granted(8, 1) == 1);
}

TEST_CASE("communicators of one rank on a GPU take turns where not all fit", "[communicator]") {
  const Gpu gpu;
  Rank wide(gpu, 1, 1), narrow(gpu, 2, 1), last(gpu, 3, 1);
  conformance::Gate gate;
  std::atomic<bool> narrow_ran = false, last_ran = false;
  wide.launch(6, gate.wait());
  narrow.launch(4, [&] { narrow_ran = true; });
  narrow.stream->synchronize();  // beside the other
  CHECK(narrow_ran);
  last.launch(5, [&] { last_ran = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!last_ran);
  gate.open();
  last.stream->synchronize();
  CHECK(last_ran);
  // Those that are through keep nothing.
  conformance::Gate again;
  narrow.launch(5, again.wait());
  last.launch(5, [&] { last_ran = false; });
  last.stream->synchronize();
  CHECK(!last_ran);
  wide.refuse(11, "11 blocks of the rank");
}
