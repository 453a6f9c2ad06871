// SPDX-License-Identifier: Apache-2.0
// What communicators take of GPUs, share there, and give back.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/fleet.h"
#include "support/gpu_calls.h"
#include "support/open_things.h"
#include "support/scoped_environment.h"

using namespace khoro::test;

namespace {

/// Queues messages to and from all others, each in a block of its own: two floats for each.
khoroResult_t exchange(khoroComm_t comm, int ranks, int rank, const Floats& floats,
                       khoroStream_t stream) {
  (void)khoroGroupStart();
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    (void)khoroSend(floats.in + 2 * peer, 2, khoroFloat32, peer, comm, stream);
    (void)khoroRecv(floats.out + 2 * peer, 2, khoroFloat32, peer, comm, stream);
  }
  return khoroGroupEnd();
}

}  // namespace

TEST_CASE("ranks that share a GPU are refused what would not fit beside others", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "1");  // of 128 blocks
  constexpr int ranks = 8;
  for (const Living living : {Living::threads, Living::processes})
    CHECK(on_ranks(living, ranks, on_gpus, [living](khoroComm_t comm, int rank) {
      const Floats floats(comm, 2 * ranks);
      khoroComm_t first = nullptr, second = nullptr, third = nullptr;
      for (khoroComm_t* made : {&first, &second, &third})
        succeed(khoroCommSplit(comm, 0, rank, made, nullptr), "split");
      succeed(exchange(first, ranks, rank, floats, nullptr), "14 blocks of each of 8");
      const khoroResult_t result = exchange(second, ranks, rank, floats, nullptr);
      expect(result == khoroInvalidUsage || result == khoroRemoteError,
             khoroGetErrorString(result));
      if (living == Living::threads)  // other processes are told less
        expect_in(khoroGetLastError(nullptr), "has to keep 112 for other communicators");
      succeed(exchange(first, ranks, rank, floats, nullptr), "the first goes on");
      succeed(khoroCommDestroy(first), "destroy");
      (void)khoroCommDestroy(second);
      succeed(khoroBarrier(comm, nullptr), "all have destroyed them");
      succeed(exchange(third, ranks, rank, floats, nullptr), "there is room again");
      succeed(khoroCommDestroy(third), "destroy");
    }));
}

TEST_CASE("communicators take turns on GPUs that have no room for all", "[gpu]") {
  constexpr int ranks = 8, communicators = 10;  // 14 blocks of each, and GPUs have 128
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", std::to_string(ranks));
  CHECK(on_ranks(Living::threads, ranks, on_gpus, [](khoroComm_t comm, int rank) {
    std::vector<khoroComm_t> comms(communicators);
    std::vector<std::unique_ptr<Floats>> floats;
    for (khoroComm_t& made : comms) {
      succeed(khoroCommSplit(comm, 0, rank, &made, nullptr), "split");
      floats.push_back(std::make_unique<Floats>(made, 2 * ranks));
    }
    for (int round = 0; round < 5; ++round) {
      // Each is on a stream of its own, and waits for ranks that queue it later.
      for (std::size_t i = 0; i < comms.size(); ++i)
        succeed(exchange(comms[i], ranks, rank, *floats[i], floats[i]->memory.stream()), "queue");
      for (const auto& each : floats) succeed(khoroStreamSynchronize(each->memory.stream()), "end");
    }
    for (khoroComm_t made : comms) succeed(khoroCommDestroy(made), "destroy");
  }));
}

namespace {

/// What is left of a virtual GPU.
std::uint64_t bytes_left(int device) {
  std::uint64_t left = 0;
  for (std::uint64_t step = std::uint64_t{1} << 34; step >= 4096; step /= 2) {
    void* memory = nullptr;
    if (khoroDeviceAlloc(&memory, left + step, khoroMemoryVirtual, device) != khoroSuccess)
      continue;
    left += step;
    succeed(khoroDeviceFree(memory), "free");
  }
  return left;
}

}  // namespace

TEST_CASE("what a communicator holds of a GPU is what the GPU has less of", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(on_ranks(Living::threads, 2, on_gpus, [](khoroComm_t comm, int rank) {
    constexpr std::size_t most = 1 << 20;
    const Floats floats(comm, most);
    const auto held = [&] {
      khoroStatistics_t now = KHORO_STATISTICS_INITIALIZER;
      succeed(khoroCommQuery(comm, &now), "statistics");
      return now;
    };
    const khoroStatistics_t before = held();
    const std::uint64_t left = bytes_left(rank);
    for (std::size_t count = 1; count <= most; count *= 8)
      succeed(khoroAllReduce(floats.in, floats.out, count, khoroFloat32, khoroSum, comm, nullptr),
              "sum");
    expect(held().bytesHeld - before.bytesHeld == left - bytes_left(rank), "another number");
    for (int calls : {1, 200}) {
      succeed(khoroGroupStart(), "group");
      for (int i = 0; i < calls; ++i) {
        succeed(khoroAlltoAll(floats.in, floats.out, 10, khoroFloat32, comm, nullptr), "alltoall");
        succeed(khoroSend(floats.in, 10, khoroFloat32, 1 - rank, comm, nullptr), "send");
        succeed(khoroRecv(floats.out + 100, 10, khoroFloat32, 1 - rank, comm, nullptr), "receive");
      }
      succeed(khoroGroupEnd(), "group");
    }
    const khoroStatistics_t after = held();
    expect(after.programBytes > before.programBytes, "programs");
    expect(after.channelBytes == before.channelBytes, "channels come with the communicator");
    // Groups are written to the GPU from memory of the host, which counts too.
    constexpr std::uint64_t of_host = 1 << 20;
    const std::uint64_t more = after.bytesHeld - before.bytesHeld, gone = left - bytes_left(rank);
    expect(more >= gone && more <= gone + of_host, "another number");
  }));
}

TEST_CASE("communicators split off on GPUs stay there, and go on without their parent", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "4");
  CHECK(on_ranks(Living::processes, 4, on_gpus, [](khoroComm_t comm, int rank) {
    int before = -1, after = -1;
    succeed(khoroCommDevice(comm, nullptr, &before), "device");
    khoroComm_t half = nullptr;
    succeed(khoroCommSplit(comm, rank % 2, -rank, &half, nullptr), "split");
    succeed(khoroCommDevice(half, nullptr, &after), "device");
    expect(before == rank && after == rank, "the rank has changed its GPU");
    Floats floats(half, 1);
    floats.here[0] = static_cast<float>(rank);
    floats.memory.bring(std::as_writable_bytes(std::span(floats.here)));
    succeed(khoroAllReduce(floats.in, floats.out, 1, khoroFloat32, khoroSum, half, nullptr), "sum");
    floats.memory.bring_back();
    expect(floats.here[1] == (rank % 2 == 0 ? 2 : 4), "another sum");
    succeed(khoroCommDestroy(half), "destroy");
  }));
}

TEST_CASE("communicators on GPUs leave nothing behind", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(in_a_process([] {
    OpenThings base;
    for (int round = 0; round < 20; ++round) {
      const int devices[] = {0, 1, 1};
      khoroComm_t comms[3];
      const ScopedEnvironment memory("KHORO_MEMORY", "virtual");
      succeed(khoroCommInitAll(comms, 3, devices), "init");
      std::vector<std::unique_ptr<Floats>> floats;
      succeed(khoroGroupStart(), "group");
      for (khoroComm_t comm : comms) {
        floats.push_back(std::make_unique<Floats>(comm, 10));
        succeed(khoroAllReduce(floats.back()->in, floats.back()->out, 10, khoroFloat32, khoroSum,
                               comm, nullptr),
                "a call");
      }
      succeed(khoroGroupEnd(), "group");
      // Some are aborted in the middle of a call that cannot end.
      if (round % 2 == 1) {
        succeed(khoroBarrier(comms[0], floats[0]->memory.stream()), "barrier");
        succeed(khoroCommAbort(comms[0]), "abort");
      }
      for (khoroComm_t comm : comms) succeed(khoroCommDestroy(comm), "destroy");
      floats.clear();
      if (round == 1) base = open_things("memfd");
      if (round > 1) expect(closed_again("memfd", base), "something was left open");
    }
  }));
}
