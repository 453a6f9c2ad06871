// SPDX-License-Identifier: Apache-2.0
// Memory that runs out on virtual GPUs, at any one thing that takes some in the life of a
// communicator: whoever asked for it is told so, nobody hangs, and nothing is left open.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/case_calls.h"
#include "support/catch.h"
#include "support/fleet.h"
#include "support/open_things.h"
#include "support/scoped_environment.h"

using namespace khoro::test;

namespace {

constexpr int ranks = 3;
constexpr std::size_t most = 30'000;  // floats, which make several messages of a rank to another

/// The calls of one rank from its first to its last. All go on after what the caller alone has
/// asked for, and after a split that failed; after any other failure only the end is left.
class Life {
 public:
  /// `named`: the failure is in this process, and so its words.
  Life(int rank, std::string settings, bool named)
      : rank_(rank), settings_(std::move(settings)), named_(named) {}

  void live(const khoroUniqueId& id) {
    khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
    config.settings = settings_.c_str();
    if (well(khoroCommInitRankConfig(&comm_, ranks, id, rank_, &config), "init")) {
      own_things();
      if (calls() && split() && called(reduce(3, nullptr), "the last call")) check_sum();
      if (broken_) expect(reduce(1, nullptr) == told_, "another cause than before");
      succeed(khoroCommDestroy(comm_), "destroy");
    }
    succeed(khoroDeviceFree(in_), "free");
    if (stream_) succeed(khoroStreamDestroy(stream_), "destroy a stream");
  }

  /// Why it, or another rank, could not go on; success if nothing failed.
  khoroResult_t told() const { return told_; }

 private:
  static std::string words() { return khoroGetLastError(nullptr); }

  /// Whether it succeeded. What fails does so for want of memory, once, and says so.
  bool well(khoroResult_t result, const std::string& step) {
    if (result == khoroSuccess) return true;
    const std::string text = step + ": " + khoroGetErrorString(result) + ": " + words();
    expect(result == khoroOutOfMemory || result == khoroRemoteError, text);
    expect(told_ == khoroSuccess, "a second failure: " + text);
    expect_in(text, named_ ? "no memory left on virtual GPU" : "rank 1");
    told_ = result;
    return false;
  }
  /// The same of calls, after which the communicator is of no more use.
  bool called(khoroResult_t result, const std::string& step) {
    const std::string said = words();
    broken_ = !well(result, step);
    if (broken_) expect_in(said, named_ ? " failed in khoro" : "rank 1");
    return !broken_;
  }
  khoroResult_t async_error() const {
    khoroResult_t error = khoroSuccess;
    succeed(khoroCommGetAsyncError(comm_, &error), "async error");
    return error;
  }
  /// The same of what the caller alone asks for: it may ask again.
  template <class Ask>
  void asked(Ask ask, const std::string& step) {
    if (well(ask(), step)) return;
    expect(async_error() == khoroSuccess, step + " has broken the communicator");
    succeed(ask(), step + ", again");
  }

  void own_things() {
    int device = -1;
    succeed(khoroCommDevice(comm_, nullptr, &device), "device");
    asked([&] { return khoroDeviceStreamCreate(&stream_, khoroMemoryVirtual, device); }, "stream");
    void* memory = nullptr;
    const std::size_t bytes = 2 * most * sizeof(float);
    asked([&] { return khoroDeviceAlloc(&memory, bytes, khoroMemoryVirtual, device); }, "memory");
    in_ = static_cast<float*>(memory);
    out_ = in_ + most;
    const float ones[3] = {1, 1, 1};
    copy(in_, ones);
  }

  /// All calls but the last: blocking and queued, alone, in groups, and beside messages.
  bool calls() {
    return called(reduce(1, nullptr), "a first call") && called(reduce(most, nullptr), "a call") &&
           called(exchange(nullptr), "blocks") &&
           called(around(stream_, [&] { return exchange(stream_); }), "messages and a call") &&
           called(around(stream_, [&] { return both(stream_); }), "messages and two calls") &&
           called(around(nullptr, [] { return khoroSuccess; }), "messages") &&
           called(khoroStreamSynchronize(stream_), "what was queued");
  }
  khoroResult_t reduce(std::size_t count, khoroStream_t stream) {
    return khoroAllReduce(in_, out_, count, khoroFloat32, khoroSum, comm_, stream);
  }
  /// Of blocks that differ.
  khoroResult_t exchange(khoroStream_t stream) {
    const auto length = [](int from, int to) { return std::size_t(1000 + 100 * from + to); };
    std::size_t gives[ranks], gets[ranks], places[ranks];
    for (int peer = 0; peer < ranks; ++peer) {
      gives[peer] = length(rank_, peer);
      gets[peer] = length(peer, rank_);
      places[peer] = std::size_t(peer) * 2000;
    }
    return khoroAlltoAllV(in_, gives, places, out_, gets, places, khoroFloat32, comm_, stream);
  }
  khoroResult_t both(khoroStream_t stream) {
    const khoroResult_t first =
        khoroAllGather(in_, out_ + 10'000, 100, khoroFloat32, comm_, stream);
    return first_failure({first, exchange(stream)});
  }
  /// Messages to the next rank, in a group with other calls.
  template <class Others>
  khoroResult_t around(khoroStream_t stream, Others others) {
    succeed(khoroGroupStart(), "group");
    const khoroResult_t sent =
        khoroSend(in_, 2000, khoroFloat32, (rank_ + 1) % ranks, comm_, stream);
    const khoroResult_t received =
        khoroRecv(out_ + 20'000, 2000, khoroFloat32, (rank_ + ranks - 1) % ranks, comm_, stream);
    const khoroResult_t rest = others();
    return first_failure({sent, received, rest, khoroGroupEnd()});
  }

  /// What fails here leaves the communicator as it is, unless that has failed before.
  bool split() {
    khoroComm_t part = nullptr;
    if (!well(khoroCommSplit(comm_, rank_ % 2, 0, &part, nullptr), "split")) {
      broken_ = async_error() != khoroSuccess;
      return !broken_;
    }
    (void)well(khoroBarrier(part, nullptr), "a call of the part");
    succeed(khoroCommDestroy(part), "destroy the part");
    return true;
  }

  void copy(float* to, const float* from) {
    succeed(khoroDeviceCopy(to, from, 3 * sizeof(float), stream_), "copy");
    succeed(khoroStreamSynchronize(stream_), "synchronize");
  }
  void check_sum() {
    float sums[3] = {};
    copy(sums, out_);
    for (const float sum : sums) expect(sum == ranks, "a wrong sum");
  }

  const int rank_;
  const std::string settings_;
  const bool named_;
  khoroComm_t comm_ = nullptr;
  khoroStream_t stream_ = nullptr;
  float *in_ = nullptr, *out_ = nullptr;
  khoroResult_t told_ = khoroSuccess;
  bool broken_ = false;  // the communicator, by what was told
};

/// Counts what the driver of this process says of what it has refused, and how often a rank has
/// done without.
struct Refusals {
  Refusals() { succeed(khoroSetLogCallback(&Refusals::hear, this), "log"); }
  ~Refusals() { (void)khoroSetLogCallback(nullptr, nullptr); }
  static void hear(void* self, int, const char* line) {
    const std::string_view said(line);
    auto& all = *static_cast<Refusals*>(self);
    all.made += said.find("that takes memory fails") != std::string_view::npos;
    all.done_without +=
        said.find("pass memory of the host: no memory left") != std::string_view::npos;
  }
  std::atomic<int> made{0}, done_without{0};
};

enum Outcome { all_was_well = 0, something_was_wrong = 1, nothing_failed = 2 };

/// Some ranks of a job, each a thread of this process.
struct Process {
  std::vector<int> ranks;
  std::uint64_t failure = 0;  // the number of the thing that fails here
};

/// All lives of the process; what each rank was told.
std::vector<khoroResult_t> live(const Process& process, const std::string& settings, SharedId& id) {
  std::vector<khoroResult_t> told(ranks);
  std::vector<std::thread> threads;
  for (const int rank : process.ranks)
    threads.emplace_back([&, rank] {
      try {
        Life life(rank, settings, process.failure != 0);
        life.live(id.get(rank));
        told[std::size_t(rank)] = life.told();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        std::_Exit(something_was_wrong);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return told;
}

int outcome(const Process& process, const std::string& settings, SharedId& before, SharedId& id) {
  ::alarm(200);  // for hangs
  const Refusals refusals;
  (void)live({process.ranks, 0}, settings, before);
  const OpenThings base = open_things("memfd");
  const ScopedEnvironment failure("KHORO_TEST_VIRTUAL_FAILURE", std::to_string(process.failure));
  const std::vector<khoroResult_t> told = live(process, settings, id);
  expect(closed_again("memfd", base), "something was left open");
  if (process.failure == 0) return all_was_well;
  if (refusals.made == 0) return nothing_failed;
  const auto own = std::count(told.begin(), told.end(), khoroOutOfMemory);
  expect(own > 0 || refusals.done_without == 1, "who was refused memory was not told");
  return all_was_well;
}

/// Fails one thing after the other in the process of rank 1, until there are no more.
int things_that_fail(const std::vector<std::vector<int>>& processes, const std::string& more) {
  // A hang ends in a timeout, which is no want of memory.
  const std::string settings = more +
                               "KHORO_MEMORY=virtual;KHORO_DEADLINE=30s;KHORO_INIT_DEADLINE=30s;"
                               "KHORO_ALGORITHM=allreduce:halving-doubling";
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2"), log("KHORO_LOG", "info");
  for (std::uint64_t failure = 1;; ++failure) {
    INFO("thing " << failure);
    SharedId before, id;
    std::vector<std::unique_ptr<Child>> children;
    int failing = 0;
    for (const std::vector<int>& here : processes) {
      const bool fails = std::find(here.begin(), here.end(), 1) != here.end();
      if (fails) failing = static_cast<int>(children.size());
      children.push_back(std::make_unique<Child>([&, fails] {
        try {
          return outcome({here, fails ? failure : 0}, settings, before, id);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s\n", error.what());
          return int{something_was_wrong};
        }
      }));
    }
    bool all_done = false;
    int wrong = 0;
    for (int i = 0; const auto& child : children) {
      const int status = child->wait();
      if (i++ == failing && status == nothing_failed)
        all_done = true;
      else
        wrong = status != all_was_well ? status : wrong;
    }
    REQUIRE(wrong == 0);
    if (all_done) return static_cast<int>(failure - 1);
  }
}

}  // namespace

TEST_CASE("any one thing that finds no memory on a GPU is told, and leaves nothing behind",
          "[gpu]") {
  const std::vector<std::vector<int>> threads = {{0, 1, 2}}, processes = {{0}, {1}, {2}};
  // All that ranks which are threads ask for, and what one rank asks for among processes.
  CHECK(things_that_fail(threads, "") > 100);
  CHECK(things_that_fail(processes, "") > 35);
  // Channels through memory of the host, which are pinned.
  CHECK(things_that_fail(threads, "KHORO_PEER_ACCESS=off;") > 100);
}
