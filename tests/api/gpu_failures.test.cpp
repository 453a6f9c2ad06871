// SPDX-License-Identifier: Apache-2.0
// What is refused on GPUs, and how calls there fail: in words, and soon.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/fleet.h"
#include "support/gpu_calls.h"
#include "support/scoped_environment.h"

using namespace khoro::test;

namespace {

using namespace std::chrono_literals;

khoroResult_t join_alone(const std::string& settings) {
  khoroUniqueId id;
  succeed(khoroGetUniqueId(&id), "id");
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = settings.c_str();
  khoroComm_t comm = nullptr;
  const khoroResult_t result = khoroCommInitRankConfig(&comm, 1, id, 0, &config);
  if (comm) succeed(khoroCommDestroy(comm), "destroy");
  return result;
}

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("who asks for GPUs where there are none is told why", "[gpu]") {
  CHECK(in_a_process([] {
    int count = 0;
    came_to(khoroInvalidUsage, khoroDeviceCount(khoroMemoryVirtual, &count), "KHORO_VIRTUAL_GPUS");
    came_to(khoroInvalidUsage, join_alone("KHORO_MEMORY=virtual"), "KHORO_VIRTUAL_GPUS");
    came_to(khoroInvalidArgument, khoroDeviceCount(khoroMemoryHost, &count), "is of no GPU");
    const khoroResult_t cuda = khoroDeviceCount(khoroMemoryCuda, &count);
    expect(cuda == khoroSuccess || cuda == khoroInvalidUsage, "the driver of GPUs is lost");
    if (cuda != khoroSuccess) came_to(khoroInvalidUsage, join_alone("KHORO_MEMORY=cuda"), "cuda");
  }));
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(in_a_process([] {
    came_to(khoroInvalidArgument, join_alone("KHORO_MEMORY=virtual;KHORO_DEVICE=2"),
            "there are 2 GPUs, 0 to 1");
    void* memory = nullptr;
    came_to(khoroInvalidArgument, khoroDeviceAlloc(&memory, 4, khoroMemoryVirtual, 2), "2");
    came_to(khoroInvalidArgument, khoroDeviceAlloc(&memory, 0, khoroMemoryVirtual, 0), "0 bytes");
    came_to(khoroInvalidArgument, khoroDeviceFree(&memory), "nothing was allocated");
    const int devices[] = {0, -1};
    khoroComm_t comms[2];
    came_to(khoroInvalidArgument, khoroCommInitAll(comms, 2, devices), "device -1 of rank 1");
  }));
  const ScopedEnvironment machine("KHORO_TOPO_FILE", "/nowhere");
  CHECK(in_a_process([] {
    came_to(khoroInvalidArgument, join_alone("KHORO_MEMORY=virtual"),
            "KHORO_TOPO_FILE=/nowhere: cannot read it");
  }));
}

TEST_CASE("calls on GPUs take memory and streams of the rank's GPU alone", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(on_ranks(Living::threads, 2, on_gpus, [](khoroComm_t comm, int rank) {
    Floats floats(comm, 100);
    const auto reduce = [&](const void* in, void* out, std::size_t count, khoroStream_t stream) {
      return khoroAllReduce(in, out, count, khoroFloat32, khoroSum, comm, stream);
    };
    float host[100];
    came_to(khoroInvalidArgument, reduce(host, floats.out, 100, nullptr), "the send buffer");
    came_to(khoroInvalidArgument, reduce(floats.in, host, 100, nullptr), "the receive buffer");
    void* foreign = nullptr;
    succeed(khoroDeviceAlloc(&foreign, 400, khoroMemoryVirtual, 1 - rank), "foreign");
    came_to(khoroInvalidArgument, reduce(floats.in, foreign, 100, nullptr), "the receive buffer");
    succeed(khoroDeviceFree(foreign), "free");
    came_to(khoroInvalidArgument, reduce(floats.in, floats.in + 100, 1 << 20, nullptr), "overlap");
    came_to(khoroInvalidArgument, reduce(floats.out, floats.out, 1 << 20, nullptr),
            "left of its allocation");

    khoroStream_t stream = nullptr;
    succeed(khoroStreamCreate(&stream), "stream");
    came_to(khoroInvalidUsage, reduce(floats.in, floats.out, 100, stream), "one of the host");
    succeed(khoroStreamDestroy(stream), "destroy");
    succeed(khoroDeviceStreamCreate(&stream, khoroMemoryVirtual, 1 - rank), "stream");
    came_to(khoroInvalidUsage, reduce(floats.in, floats.out, 100, stream), "this rank is on");
    khoroEvent_t event = nullptr;
    succeed(khoroEventCreate(&event), "event");
    came_to(khoroInvalidUsage, khoroEventRecord(event, stream), "one of a GPU");
    succeed(khoroEventDestroy(event), "destroy");
    succeed(khoroStreamDestroy(stream), "destroy");

    came_to(khoroInvalidUsage, khoroSendTag(floats.in, 1, khoroFloat32, 1 - rank, 7, comm, nullptr),
            "no tags");
    // All of that was refused, and changed nothing.
    succeed(reduce(floats.in, floats.out, 100, nullptr), "a right call");
    // What a call ignores may be anything.
    succeed(khoroReduce(floats.in, rank == 0 ? floats.out : host, 100, khoroFloat32, khoroSum, 0,
                        comm, nullptr),
            "a reduce");
  }));
}

TEST_CASE("ranks that differ are told so", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  SharedId id;
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < 2; ++rank)
    children.push_back(std::make_unique<Child>([&, rank] {
      khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
      config.settings = rank == 0 ? "KHORO_MEMORY=virtual" : "KHORO_MEMORY=host";
      khoroComm_t comm = nullptr;
      came_to(khoroMismatch, khoroCommInitRankConfig(&comm, 2, id.get(rank), rank, &config),
              "KHORO_MEMORY is '");
      return 0;
    }));
  for (const auto& child : children) {
    const int status = child->wait();
    CHECK(status == 0);
  }
  for (const Living living : {Living::threads, Living::processes})
    CHECK(on_ranks(living, 2, on_gpus, [](khoroComm_t comm, int rank) {
      Floats floats(comm, 5000);
      const std::size_t count = rank == 0 ? 5000 : 4999;
      const khoroResult_t result = khoroAllReduce(floats.in, floats.out, count, khoroFloat32,
                                                  khoroSum, comm, floats.memory.stream());
      expect(result == khoroSuccess || result == khoroMismatch, "it was not queued");
      expect(await_failure(comm) == khoroMismatch, "the mismatch was not found");
      const std::string words = khoroGetLastError(comm);
      expect(words.find("4999") != std::string::npos && words.find("5000") != std::string::npos,
             words + ": names not both counts");
    }));
}

TEST_CASE("calls on GPUs end at their deadline, and by abort", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  for (const Living living : {Living::threads, Living::processes})
    CHECK(on_ranks(
        living, 2, "KHORO_MEMORY=virtual;KHORO_DEADLINE=300ms", [](khoroComm_t comm, int rank) {
          Floats floats(comm, 100);
          if (rank == 1) {
            const khoroResult_t error = await_failure(comm);
            expect(error == khoroTimeout, khoroGetErrorString(error));
            return;
          }
          const double seconds = seconds_of([&] {
            came_to(
                khoroTimeout,
                khoroAllReduce(floats.in, floats.out, 100, khoroFloat32, khoroSum, comm, nullptr),
                "rank 1");
          });
          expect(seconds < 10, "it took long");
        }));
  CHECK(on_ranks(Living::threads, 2, on_gpus, [](khoroComm_t comm, int rank) {
    Floats floats(comm, 100);
    if (rank == 1) {
      std::this_thread::sleep_for(100ms);
      succeed(khoroCommAbort(comm), "abort");
      return;
    }
    const khoroResult_t result =
        khoroAllReduce(floats.in, floats.out, 100, khoroFloat32, khoroSum, comm, nullptr);
    expect(result == khoroAborted, khoroGetErrorString(result));
  }));
}

TEST_CASE("of calls that are one launch on a GPU each begins, ends and fails by itself", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  const auto sum = [](khoroComm_t comm, const Floats& floats, std::size_t count,
                      khoroStream_t stream) {
    return khoroAllReduce(floats.in, floats.out, count, khoroFloat32, khoroSum, comm, stream);
  };
  const auto two_sums = [&](khoroComm_t comm, const Floats& floats, khoroStream_t stream) {
    succeed(khoroGroupStart(), "group");
    succeed(sum(comm, floats, 100, stream), "sum");
    succeed(sum(comm, floats, 50, stream), "sum");
    return khoroGroupEnd();
  };
  for (const bool blocks : {false, true})
    CHECK(on_ranks(Living::threads, 2, "KHORO_MEMORY=virtual;KHORO_DEADLINE=500ms",
                   [&](khoroComm_t comm, int rank) {
                     Floats floats(comm, 100);
                     if (rank == 0) {
                       (void)two_sums(comm, floats, blocks ? nullptr : floats.memory.stream());
                     } else {
                       succeed(sum(comm, floats, 100, nullptr), "sum");
                     }
                     expect(await_failure(comm) == khoroTimeout, "another error");
                     const std::string words = khoroGetLastError(comm);
                     expect_in(words, "allreduce #2");
                     expect_in(words, "rank 1 did not call it");
                   }));
  // More than there are records.
  CHECK(on_ranks(Living::threads, 2, "KHORO_MEMORY=virtual;KHORO_DEADLINE=2s",
                 [&](khoroComm_t comm, int rank) {
                   Floats floats(comm, 100);
                   succeed(khoroGroupStart(), "group");
                   for (int i = 0; i < (rank == 0 ? 300 : 45); ++i)
                     succeed(sum(comm, floats, 100, floats.memory.stream()), "sum");
                   succeed(khoroGroupEnd(), "group");
                   expect(await_failure(comm) == khoroTimeout, "another error");
                   expect_in(khoroGetLastError(comm), "allreduce #46");
                 }));
  // Two that each take two seconds of three.
  for (const bool blocks : {false, true})
    CHECK(on_ranks(Living::threads, 2, "KHORO_MEMORY=virtual;KHORO_DEADLINE=3s",
                   [&](khoroComm_t comm, int rank) {
                     Floats floats(comm, 100);
                     const khoroStream_t stream = floats.memory.stream();
                     if (rank == 0) {
                       succeed(two_sums(comm, floats, blocks ? nullptr : stream), "sums");
                       return succeed(khoroStreamSynchronize(stream), "wait");
                     }
                     for (const std::size_t count : {100, 50}) {
                       std::this_thread::sleep_for(2s);
                       succeed(sum(comm, floats, count, nullptr), "sum");
                     }
                   }));
}

TEST_CASE("a message to itself that has not begun on a GPU moves nothing after an abort", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(on_ranks(Living::threads, 2, on_gpus, [](khoroComm_t comm, int rank) {
    khoroComm_t own = nullptr;
    succeed(khoroCommSplit(comm, rank, 0, &own, nullptr), "split");
    Floats floats(own, 100), others(comm, 100);
    if (rank == 0) {
      const khoroStream_t stream = floats.memory.stream();
      floats.here[0] = 1;
      floats.memory.bring(std::as_writable_bytes(std::span(floats.here)));
      succeed(khoroAllReduce(others.in, others.out, 100, khoroFloat32, khoroSum, comm, stream),
              "a call that rank 1 does not make");
      succeed(khoroGroupStart(), "group");
      succeed(khoroSend(floats.in, 100, khoroFloat32, 0, own, stream), "send");
      succeed(khoroRecv(floats.out, 100, khoroFloat32, 0, own, stream), "receive");
      succeed(khoroGroupEnd(), "group");
      succeed(khoroCommAbort(own), "abort");
      succeed(khoroCommAbort(comm), "abort");
      (void)khoroStreamSynchronize(stream);
      floats.memory.bring_back();
      expect(floats.here[100] == 0, "it was moved");
    } else {
      expect(await_failure(comm) == khoroAborted, "another error");
    }
    (void)khoroCommDestroy(own);
  }));
}

TEST_CASE("a rank on a GPU may leave once it has its messages, and not before", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  CHECK(on_ranks(Living::threads, 3, on_gpus, [](khoroComm_t comm, int rank) {
    Floats floats(comm, 1);
    if (rank == 1)
      return succeed(khoroRecv(floats.out, 1, khoroFloat32, 0, comm, nullptr), "receive");
    if (rank == 2) {
      std::this_thread::sleep_for(1s);
      return succeed(khoroSend(floats.in, 1, khoroFloat32, 0, comm, nullptr), "send");
    }
    // The send is done, and rank 1 gone, while the same kernel waits for rank 2.
    succeed(khoroGroupStart(), "group");
    succeed(khoroSend(floats.in, 1, khoroFloat32, 1, comm, nullptr), "send");
    succeed(khoroRecv(floats.out, 1, khoroFloat32, 2, comm, nullptr), "receive");
    succeed(khoroGroupEnd(), "group");
    came_to(khoroRemoteError, khoroRecv(floats.out, 1, khoroFloat32, 1, comm, nullptr),
            "has left the communicator");
  }));
}

TEST_CASE("a killed rank ends the calls of the others on GPUs", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  SharedId id;
  int through[2];  // a byte of each of the others: its first call has ended
  REQUIRE(::pipe(through) == 0);
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < 3; ++rank)
    children.push_back(std::make_unique<Child>([&, rank] {
      return run_rank(id, rank, 3, on_gpus, [&](khoroComm_t comm, int rank) {
        Floats floats(comm, 100'000);
        char byte = 0;
        const auto reduce = [&](khoroStream_t stream) {
          return khoroAllReduce(floats.in, floats.out, 100'000, khoroFloat32, khoroSum, comm,
                                stream);
        };
        succeed(reduce(nullptr), "the first call");
        // In the middle of calls, some of them queued.
        if (rank == 1) {
          for (int other = 0; other < 2; ++other)
            expect(::read(through[0], &byte, 1) == 1, "the others");
          for (int i = 0; i < 20; ++i) succeed(reduce(floats.memory.stream()), "queued");
          ::kill(::getpid(), SIGKILL);
        }
        expect(::write(through[1], &byte, 1) == 1, "what rank 1 waits for");
        khoroResult_t result = khoroSuccess;
        for (int i = 0; i < 1000 && result == khoroSuccess; ++i) result = reduce(nullptr);
        came_to(khoroPeerDied, result, "rank 1");
      });
    }));
  for (int rank = 0; rank < 3; ++rank) {
    const int status = children[std::size_t(rank)]->wait();
    CHECK(status == (rank == 1 ? -SIGKILL : 0));
  }
  for (int end : through) ::close(end);
}

TEST_CASE("who is told of a failure has its buffers back", "[gpu]") {
  // Kernels of the others read and fill them until they stop. What is freed too early is no memory
  // of theirs any more, and they die of it.
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3"), quiet("KHORO_LOG", "off");
  const char* const algorithms[] = {"ring", "two-shot", "double-tree"};
  int round = 0;
  const auto fail = [&](khoroComm_t comm, int rank) {
    constexpr std::size_t count = 100'000;
    const int breaker = round % 3;
    khoroStream_t stream = nullptr;
    succeed(khoroDeviceStreamCreate(&stream, khoroMemoryVirtual, rank), "stream");
    void *in = nullptr, *out = nullptr;
    for (void** buffer : {&in, &out})
      succeed(khoroDeviceAlloc(buffer, 4 * count, khoroMemoryVirtual, rank), "memory");
    const auto reduce = [&](khoroStream_t on) {
      return khoroAllReduce(in, out, count, khoroFloat32, khoroSum, comm, on);
    };
    khoroResult_t result = khoroSuccess;
    for (int i = 0; i < 10 && result == khoroSuccess; ++i) result = reduce(stream);
    if (rank == breaker) {
      std::this_thread::sleep_for(std::chrono::microseconds(997 * (round % 17)));
      succeed(khoroCommAbort(comm), "abort");
    } else if (round % 2 == 0) {
      while (result == khoroSuccess) result = reduce(nullptr);
    } else {
      result = await_failure(comm);
    }
    expect(rank == breaker || result == khoroAborted, khoroGetErrorString(result));
    // Some of what was queued may not have begun, and touches nothing when it does.
    for (void* buffer : {in, out}) succeed(khoroDeviceFree(buffer), "free");
    succeed(khoroStreamDestroy(stream), "destroy");
  };
  for (; round < 60; ++round) {
    const std::string settings =
        "KHORO_MEMORY=virtual;KHORO_DIRECT_BYTES=1;KHORO_ALGORITHM=allreduce:";
    CHECK(on_ranks(Living::threads, 3, settings + algorithms[round % 3], fail));
  }
}

TEST_CASE("memory of a GPU that runs out is an error on all ranks", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  constexpr std::size_t all = std::size_t{16} << 30;
  CHECK(in_a_process([] {
    void* memory = nullptr;
    succeed(khoroDeviceAlloc(&memory, all, khoroMemoryVirtual, 0), "all of it");
    void* more = nullptr;
    came_to(khoroOutOfMemory, khoroDeviceAlloc(&more, 4096, khoroMemoryVirtual, 0), "left");
    came_to(khoroOutOfMemory, join_alone("KHORO_MEMORY=virtual;KHORO_DEVICE=0"), "left");
    succeed(khoroDeviceFree(memory), "free");
    succeed(join_alone("KHORO_MEMORY=virtual;KHORO_DEVICE=0"), "again");
  }));
  // A call needs memory for its program, and for partial results.
  CHECK(on_ranks(Living::threads, 2, on_gpus, [](khoroComm_t comm, int rank) {
    Floats floats(comm, 100);
    std::vector<void*> taken;
    for (std::size_t bytes = all; rank == 0 && bytes >= 4096; bytes /= 2) {
      void* memory = nullptr;
      while (khoroDeviceAlloc(&memory, bytes, khoroMemoryVirtual, 0) == khoroSuccess)
        taken.push_back(memory);
    }
    const khoroResult_t result =
        khoroAllReduce(floats.in, floats.out, 100, khoroFloat32, khoroSum, comm, nullptr);
    const khoroResult_t expected = rank == 0 ? khoroOutOfMemory : khoroRemoteError;
    expect(result == khoroOutOfMemory || result == expected, khoroGetErrorString(result));
    for (void* memory : taken) succeed(khoroDeviceFree(memory), "free");
  }));
}
