// SPDX-License-Identifier: Apache-2.0
// Ranks that do not make the same calls, under a virtual clock: what is promised in seconds holds
// there to the letter.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "communicator/group.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/seeds.h"
#include "support/virtual_job.h"

using namespace khoro;
using namespace std::chrono_literals;
using Catch::Contains;
using test::CapturedLog;
using test::QuietLog;
using test::VirtualJob;

namespace {

/// A job whose ranks look at their peers twice a second, as the control thread has them do.
class Played {
 public:
  explicit Played(const VirtualJob::Setup& setup)
      : ranks_(static_cast<int>(setup.processes.size())),
        job_(setup),
        memory_(2 * setup.processes.size()) {
    for (auto& each : memory_) each.resize(1 << 16);
    look_later();
  }

  VirtualJob& job() { return job_; }
  int ranks() const { return ranks_; }

  /// Begins after `late`, and makes `calls` one after the other.
  void play(int rank, Duration late, const std::vector<Signature>& calls) {
    job_.play(rank, [this, rank, late, calls] {
      job_.system().sleep(late);
      began_ = std::max(began_, job_.system().now());
      Told& told = told_.at(static_cast<std::size_t>(rank));
      try {
        for (const Signature& call : calls) make(rank, call);
        while (job_.communicator(rank).async_error() == Code::success) job_.system().sleep(5ms);
        make(rank, Signature{CallKind::barrier});
      } catch (const Error& error) {
        told = {error.code(), error.what(), job_.system().now()};
      }
    });
  }

  void make(int rank, const Signature& call) {
    auto& in = memory_.at(static_cast<std::size_t>(2 * rank));
    auto& out = memory_.at(static_cast<std::size_t>(2 * rank + 1));
    job_.communicator(rank).run({call, {in.data(), out.data()}});
  }

  struct Told {
    Code code = Code::success;
    std::string words;
    Time when{};
  };
  const Told& told(int rank) const { return told_.at(static_cast<std::size_t>(rank)); }
  /// From the begin of the last rank to the last report.
  Duration longest() const {
    Time last{};
    for (const Told& each : told_) last = std::max(last, each.when);
    return last - began_;
  }

 private:
  void look_later() {
    job_.system().at(job_.system().now() + 500ms, [this] {
      for (int rank = 0; rank < ranks_; ++rank) job_.communicator(rank).look_at_peers();
      look_later();
    });
  }

  int ranks_;
  VirtualJob job_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Told> told_{static_cast<std::size_t>(ranks_)};
  Time began_{};
};

Signature drawn(std::uint64_t seed, int ranks) {
  Signature call;
  call.kind = static_cast<CallKind>(mix(seed) % 9);
  if (call.kind == CallKind::barrier) return call;
  constexpr std::uint64_t counts[] = {0, 3, 100, 1'000};
  call.count = counts[mix(seed + 1) % 4];
  call.dtype = mix(seed + 2) % 2 != 0 ? Dtype::i32 : Dtype::f64;
  const Collective collective = call.collective(ranks);
  if (collective.reduces())
    call.reduction = mix(seed + 3) % 2 != 0 ? Reduction::sum : Reduction::max;
  if (collective.has_root())
    call.peer = static_cast<int>(mix(seed + 4) % static_cast<std::uint64_t>(ranks));
  return call;
}

/// Every rank is told in time of a mismatch, in words that hold each of `parts`.
void check_told(Played& played, const std::vector<std::string>& parts) {
  REQUIRE(played.job().run() == test::VirtualSystem::End::all_ended);
  CHECK(played.longest() < 2s);
  for (int rank = 0; rank < played.ranks(); ++rank) {
    INFO("rank " << rank << ": " << played.told(rank).words);
    CHECK(played.told(rank).code == Code::mismatch);
    for (const std::string& part : parts) CHECK_THAT(played.told(rank).words, Contains(part));
  }
}

}  // namespace

TEST_CASE("whatever call is odd, on whatever rank, every rank is told within 2 s",
          "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(1'500, [](std::uint64_t seed) {
    const int ranks = 2 + static_cast<int>(seed % 4);
    const int odd = static_cast<int>(mix(seed + 9) % static_cast<std::uint64_t>(ranks));
    const Signature call = drawn(seed * 8, ranks), other = drawn(seed * 8 + 4, ranks);
    if (call == other) return;
    INFO(describe(call) << ", on rank " << odd << " of " << ranks << " " << describe(other));
    Played played(VirtualJob::drawn(seed, ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto late = Duration(mix(seed + static_cast<std::uint64_t>(rank)) % 300'000'000);
      std::vector<Signature> calls(seed % 3, drawn(seed + 77, ranks));
      calls.push_back(rank == odd ? other : call);
      played.play(rank, late, calls);
    }
    check_told(played, {describe(call), fmt::format("rank {} called {}", odd, describe(other))});
  });
}

TEST_CASE("a circle of receives, or of sends that find no room, is told within 2 s",
          "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(300, [](std::uint64_t seed) {
    const int ranks = 2 + static_cast<int>(seed % 4);
    Played played(VirtualJob::drawn(seed, ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const Signature sends{CallKind::send, Dtype::f64, {}, (rank + 1) % ranks, 8'000};
      const Signature receives{CallKind::recv, Dtype::f64, {}, (rank + ranks - 1) % ranks, 8'000};
      const auto late = Duration(mix(seed + static_cast<std::uint64_t>(rank)) % 300'000'000);
      std::vector<Signature> calls{sends, receives};
      if (seed % 2 != 0) std::swap(calls[0], calls[1]);
      played.play(rank, late, calls);
    }
    check_told(played, {"a cycle", seed % 2 != 0 ? "khoroRecv(8000" : "khoroSend(8000"});
  });
}

TEST_CASE("ranks that are late for seconds but make the same calls are told nothing",
          "[communicator]") {
  test::for_each_seed(100, [](std::uint64_t seed) {
    const int ranks = 2 + static_cast<int>(seed % 4);
    const CapturedLog log;
    Played played(VirtualJob::drawn(seed, ranks));
    std::vector<int> made(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      played.job().play(rank, [&, rank] {
        const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
        const Signature sends{CallKind::send, Dtype::f64, {}, right, 8'000};
        const Signature receives{CallKind::recv, Dtype::f64, {}, left, 8'000};
        for (std::uint64_t call = 0; call < 12; ++call) {
          if (mix(seed * 100 + call * 10 + static_cast<std::uint64_t>(rank)) % 4 == 0)
            played.job().system().sleep(2s);
          if (call % 3 != 0) {
            played.make(rank, drawn(seed + call, ranks));
          } else {
            // Around the ring: each waits for its turn.
            if (rank == 0) played.make(rank, sends);
            played.make(rank, receives);
            if (rank != 0) played.make(rank, sends);
          }
        }
        made[static_cast<std::size_t>(rank)] = 12;
      });
    REQUIRE(played.job().run() == test::VirtualSystem::End::all_ended);
    for (const int each : made) CHECK(each == 12);
    CHECK(log.lines().empty());
  });
}

TEST_CASE("empty calls do not run so far ahead that the slowest rank cannot compare them",
          "[communicator]") {
  const Signature empty{CallKind::allreduce, Dtype::f64, Reduction::sum, 0, 0};
  Played played(VirtualJob::drawn(3, 3));
  std::vector<std::uint64_t> made(3);
  bool apart = false;
  for (int rank = 0; rank < 3; ++rank)
    played.job().play(rank, [&, rank] {
      if (rank == 1) played.job().system().sleep(3s);
      for (int call = 0; call < 2'000; ++call) {
        played.make(rank, empty);
        const auto [least, most] = std::minmax_element(made.begin(), made.end());
        apart |= *most > *least + 256;
        ++made[static_cast<std::size_t>(rank)];
      }
    });
  played.job().system().at(2900ms, [&] {
    CHECK(made[0] == 255);
    CHECK(made[2] == 255);
  });
  REQUIRE(played.job().run() == test::VirtualSystem::End::all_ended);
  CHECK_FALSE(apart);
  CHECK(made == std::vector<std::uint64_t>{2'000, 2'000, 2'000});
}

TEST_CASE("an empty call that waits for a rank that never comes ends at the deadline",
          "[communicator]") {
  const QuietLog quiet;
  Played played(VirtualJob::drawn(5, 2));
  played.job().communicator(0).set_deadline(3s);
  played.play(0, 0s, std::vector<Signature>(300, {CallKind::allgather, Dtype::f64, {}, 0, 0}));
  played.play(1, 0s, {});
  REQUIRE(played.job().run() == test::VirtualSystem::End::all_ended);
  CHECK(played.longest() < 4s);
  CHECK(played.told(0).code == Code::timeout);
  CHECK_THAT(played.told(0).words, Contains("rank 1 did not call it"));
  CHECK(played.told(1).code == Code::timeout);
}

TEST_CASE("who destroys its communicator compares a last time", "[communicator]") {
  const CapturedLog log;
  {
    VirtualJob job(VirtualJob::drawn(7, 2));
    job.communicator(0).run({{CallKind::allreduce, Dtype::f64, Reduction::sum, 0, 0}, {}});
    job.communicator(1).run({{CallKind::allgather, Dtype::f64, {}, 0, 0}, {}});
  }
  CHECK(log.count("rank 1 called khoroAllGather(0 x khoroFloat64)") >= 1);
}

namespace {

/// Rank 0 waits in a group for a broadcast from `root`, and for a message from another rank, which
/// it began to receive last. How that ends.
void wait_in_group(VirtualJob& job, int root, int sender, Code& code) {
  job.play(0, [&job, &code, root, sender] {
    std::vector<std::byte> memory(80);
    Batch group(job.communicator(0));
    group.add({{CallKind::broadcast, Dtype::i32, Reduction::sum, root, 10},
               {memory.data(), memory.data()}});
    group.add(
        {{CallKind::recv, Dtype::i32, Reduction::sum, sender, 10}, {nullptr, memory.data() + 40}});
    try {
      run_together({&group, 1});
    } catch (const Error& error) {
      code = error.code();
    }
  });
}

}  // namespace

TEST_CASE("a rank says once for its group that it is stuck, and for whom its collective waits",
          "[communicator]") {
  const QuietLog quiet;
  VirtualJob job(VirtualJob::drawn(1, 3));
  Code code = Code::success;
  wait_in_group(job, 2, 1, code);
  RankPage::Stuck stuck;
  job.system().at(job.now() + 200ms, [&] {
    stuck = job.communicator(0).peers().page(0).stuck_times(3);
    job.communicator(1).abort();
  });
  CHECK(job.run() == test::VirtualSystem::End::all_ended);
  CHECK(code == Code::aborted);
  CHECK(stuck.times == 1);
  CHECK(stuck.peer == 2);
}

TEST_CASE("a failure names the call of a group that failed, not the one that began last",
          "[communicator]") {
  const QuietLog quiet;
  VirtualJob job(VirtualJob::drawn(2, 3));
  Code code = Code::success;
  wait_in_group(job, 1, 2, code);
  job.leave(1);
  CHECK(job.run() == test::VirtualSystem::End::all_ended);
  CHECK(code == Code::remote_error);
  const auto cause = job.communicator(0).peers().page(0).notice(3);
  REQUIRE(cause);
  CHECK(cause->kind == CallKind::broadcast);
  CHECK(cause->operation == 1);
  CHECK(cause->culprit == 1);
}
