// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"

namespace khoro::test {

/// How the ranks of a test live. Threads are those of one process, which is not the test's own.
enum class Living { processes, threads };

/// What one rank does; throws when something is not as it should be.
using RankBody = std::function<void(khoroComm_t comm, int rank)>;

/// Throws, with the words of the library, unless the call succeeded.
inline void succeed(khoroResult_t result, const std::string& what) {
  if (result == khoroSuccess) return;
  throw std::runtime_error(what + ": " + khoroGetErrorString(result) + ": " +
                           khoroGetLastError(nullptr));
}

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}
inline void expect_in(const std::string& words, const std::string& part) {
  expect(words.find(part) != std::string::npos, words + ": says nothing of: " + part);
}

/// The communicator fails within 10 s, which is there for hangs alone.
inline khoroResult_t await_failure(khoroComm_t comm) {
  khoroResult_t error = khoroSuccess;
  for (int ms = 0; error == khoroSuccess && ms < 10'000; ++ms) {
    succeed(khoroCommGetAsyncError(comm, &error), "async error");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return error;
}

/// An id that one rank makes and the others wait for, in memory that forked processes share.
class SharedId {
 public:
  SharedId() {
    void* memory =
        ::mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
    place_ = new (memory) Place;
  }
  ~SharedId() { ::munmap(place_, sizeof(Place)); }
  SharedId(const SharedId&) = delete;
  SharedId& operator=(const SharedId&) = delete;

  khoroUniqueId get(int rank) {
    if (rank == 0) {
      succeed(khoroGetUniqueId(&place_->id), "khoroGetUniqueId");
      place_->made.store(true);
    }
    for (int ms = 0; !place_->made.load(); ++ms) {
      if (ms > 60'000) throw std::runtime_error("rank 0 has made no id");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return place_->id;
  }

 private:
  struct Place {
    std::atomic<bool> made{false};
    khoroUniqueId id{};
  };
  Place* place_;
};

/// Joins, does what the body says, and leaves. What goes wrong goes to standard error; 0 if nothing
/// does.
inline int run_rank(SharedId& id, int rank, int ranks, const std::string& settings,
                    const RankBody& body) {
  try {
    khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
    config.settings = settings.c_str();
    khoroComm_t comm = nullptr;
    succeed(khoroCommInitRankConfig(&comm, ranks, id.get(rank), rank, &config), "init");
    body(comm, rank);
    succeed(khoroCommDestroy(comm), "destroy");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, error.what());
    // The others would wait for it, and it is a process of the test's alone.
    std::_Exit(1);
  }
}

/// Runs the body on all ranks of a new communicator. False: some rank has said what went wrong. The
/// test's own process must not use Khoro.
inline bool on_ranks(Living living, int ranks, const std::string& settings, const RankBody& body) {
  SharedId id;
  std::vector<std::unique_ptr<Child>> children;
  if (living == Living::processes) {
    for (int rank = 0; rank < ranks; ++rank)
      children.push_back(
          std::make_unique<Child>([&, rank] { return run_rank(id, rank, ranks, settings, body); }));
  } else {
    children.push_back(std::make_unique<Child>([&] {
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] { run_rank(id, rank, ranks, settings, body); });
      for (std::thread& thread : threads) thread.join();
      return 0;
    }));
  }
  bool well = true;
  for (const auto& child : children) well = child->wait() == 0 && well;
  return well;
}

}  // namespace khoro::test
