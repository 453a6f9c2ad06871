// SPDX-License-Identifier: Apache-2.0
// How soon kernels end that wait for a rank which never comes.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/fleet.h"
#include "support/scoped_environment.h"

using namespace khoro::test;

namespace {

using namespace std::chrono_literals;

constexpr int ranks = 4, absent = 3;
constexpr std::size_t large = 1 << 20;  // floats: more than the slots of a channel hold
constexpr int rounds = 10;
constexpr double limit = 0.2;  // seconds

using Queue = khoroResult_t (*)(const float* in, float* out, khoroComm_t comm,
                                khoroStream_t stream);

/// In what a kernel waits.
struct Waiting {
  const char* name;
  Queue queue;
};
constexpr Waiting waits[] = {
    {"words with flags",
     [](auto* in, auto* out, auto comm, auto stream) {
       return khoroAllReduce(in, out, 100, khoroFloat32, khoroSum, comm, stream);
     }},
    {"slots that are not filled",
     [](auto*, auto* out, auto comm, auto stream) {
       return khoroRecv(out, large, khoroFloat32, absent, comm, stream);
     }},
    {"slots that are not emptied", [](auto* in, auto*, auto comm, auto stream) {
       return khoroSend(in, large, khoroFloat32, absent, comm, stream);
     }}};

enum class Stop { abort, deadline };

/// Of the clock that all processes see.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  int rank;
  double stop;   // its deadline, or when it has aborted; 0: others do that
  double ended;  // its stream was done
};

/// Queues a call whose kernel waits, and waits for the stream, which rank 0 may have stopped.
Times times_of(khoroComm_t comm, int rank, const Waiting& waiting, Stop stop) {
  khoroStream_t stream = nullptr;
  void* memory = nullptr;
  succeed(khoroDeviceStreamCreate(&stream, khoroMemoryVirtual, 0), "stream");
  succeed(khoroDeviceAlloc(&memory, 2 * large * sizeof(float), khoroMemoryVirtual, 0), "memory");
  auto* const in = static_cast<float*>(memory);
  Times times{rank, stop == Stop::deadline ? seconds_now() + limit : 0, 0};
  succeed(waiting.queue(in, in + large, comm, stream), "queue");
  if (stop == Stop::abort && rank == 0) {
    std::this_thread::sleep_for(50ms);
    expect(khoroStreamQuery(stream) == khoroInProgress, "the kernel does not wait");
    times.stop = seconds_now();
    succeed(khoroCommAbort(comm), "abort");
  }
  (void)khoroStreamSynchronize(stream);
  times.ended = seconds_now();
  khoroResult_t error = khoroSuccess;
  succeed(khoroCommGetAsyncError(comm, &error), "async error");
  expect(error == (stop == Stop::abort ? khoroAborted : khoroTimeout), khoroGetErrorString(error));
  succeed(khoroDeviceFree(memory), "free");
  succeed(khoroStreamDestroy(stream), "destroy");
  return times;
}

/// Seconds from when kernels were to end until the last of them had ended.
double seconds_to_stop(Living living, const Waiting& waiting, Stop stop) {
  int through[2];
  REQUIRE(::pipe(through) == 0);  // what the ranks have measured
  const char* const settings = stop == Stop::deadline ? "KHORO_MEMORY=virtual;KHORO_DEADLINE=200ms"
                                                      : "KHORO_MEMORY=virtual;KHORO_DEADLINE=60s";
  REQUIRE(on_ranks(living, ranks, settings, [&](khoroComm_t comm, int rank) {
    if (rank == absent) {
      (void)await_failure(comm);
      return;
    }
    const Times times = times_of(comm, rank, waiting, stop);
    expect(::write(through[1], &times, sizeof times) == sizeof times, "what the test reads");
  }));
  double stopped = 0, ended = 0;
  for (int i = 0; i < absent; ++i) {
    Times times;
    REQUIRE(::read(through[0], &times, sizeof times) == sizeof times);
    stopped = std::max(stopped, times.stop);
    ended = std::max(ended, times.ended);
  }
  for (const int end : through) ::close(end);
  return ended - stopped;
}

}  // namespace

TEST_CASE("a kernel that waits for nobody ends within a second of abort and deadline", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "1"), quiet("KHORO_LOG", "off");
  for (const Living living : {Living::threads, Living::processes})
    for (const Stop stop : {Stop::abort, Stop::deadline})
      for (const Waiting& waiting : waits) {
        std::vector<double> seconds;
        for (int round = 0; round < rounds; ++round)
          seconds.push_back(seconds_to_stop(living, waiting, stop));
        std::sort(seconds.begin(), seconds.end());
        const double median = seconds[rounds / 2];
        WARN("ranks that are " << (living == Living::threads ? "threads" : "processes") << ", "
                               << (stop == Stop::abort ? "abort" : "deadline") << ", "
                               << waiting.name << ": " << 1e3 * median << " ms, at most "
                               << 1e3 * seconds.back());
        CHECK(median < 1);
      }
}
