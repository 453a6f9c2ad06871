// SPDX-License-Identifier: Apache-2.0
// The whole protocol of a communicator in one thread, under a virtual clock.
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/seeds.h"
#include "support/virtual_job.h"

using namespace khoro;
using test::QuietLog;
using test::VirtualJob;

namespace {

constexpr int ranks = 4;

Call allreduce(const std::vector<std::int32_t>& in, std::vector<std::int32_t>& out) {
  return {
      {CallKind::allreduce, Dtype::i32, Reduction::sum, 0, in.size()},
      {reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data())}};
}

/// What one rank came to.
struct Outcome {
  int calls = 0;  // that succeeded
  bool right = true;
  Code code = Code::success;
  std::string words;
};

/// Counts that every rank draws alike: none, few, and many tiles.
std::size_t count_of(std::uint64_t seed, int call) {
  const std::uint64_t drawn = mix(seed * 31 + static_cast<std::uint64_t>(call));
  switch (drawn % 4) {
    case 0:
      return drawn / 4 % 3;
    case 1:
      return drawn / 4 % 64;
    default:
      return drawn / 4 % 3'000;
  }
}

void play_rank(VirtualJob& job, std::uint64_t seed, int rank, int calls, Outcome& outcome) {
  try {
    for (int call = 0; call < calls; ++call) {
      const std::size_t count = count_of(seed, call);
      std::vector<std::int32_t> in(count), out(count, -1);
      for (std::size_t i = 0; i < count; ++i)
        in[i] = static_cast<std::int32_t>(mix(i + seed) % 1000) * (rank + 1) + call;
      job.communicator(rank).run(allreduce(in, out));
      for (std::size_t i = 0; i < count; ++i)
        outcome.right &= out[i] == static_cast<std::int32_t>(mix(i + seed) % 1000) * 10 + 4 * call;
      ++outcome.calls;
    }
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.words = error.what();
  }
}

struct Played {
  std::vector<Outcome> outcomes = std::vector<Outcome>(ranks);
  Time end{};
};

Played play(const VirtualJob::Setup& setup, int calls) {
  Played played;
  VirtualJob job(setup);
  for (int rank = 0; rank < ranks; ++rank)
    job.play(rank, [&, rank] {
      play_rank(job, setup.seed, rank, calls, played.outcomes[static_cast<std::size_t>(rank)]);
    });
  REQUIRE(job.run() == test::VirtualSystem::End::all_ended);
  played.end = job.system().now();
  return played;
}

}  // namespace

TEST_CASE("nobody waits for its clock when all come", "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(100, [](std::uint64_t seed) {
    const Played played = play(VirtualJob::drawn(seed, ranks), 6);
    for (const Outcome& outcome : played.outcomes) {
      CHECK(outcome.calls == 6);
      CHECK(outcome.right);
    }
    // A wait that nobody ends lasts until records are compared, 50 ms after it began.
    CHECK(played.end < std::chrono::milliseconds(50));
  });
}

TEST_CASE("a rank that makes another call is named to every rank", "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(200, [](std::uint64_t seed) {
    const int odd = static_cast<int>(seed % ranks);
    VirtualJob job(VirtualJob::drawn(seed, ranks));
    std::vector<std::string> words(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      job.play(rank, [&, rank] {
        std::vector<std::int32_t> in(rank == odd ? 501 : 500, 1), out(in.size());
        try {
          job.communicator(rank).run(allreduce(in, out));
          words[static_cast<std::size_t>(rank)] = "success";
        } catch (const Error& error) {
          if (error.code() == Code::mismatch) words[static_cast<std::size_t>(rank)] = error.what();
        }
      });
    REQUIRE(job.run() == test::VirtualSystem::End::all_ended);
    CHECK(job.system().now() < std::chrono::seconds(2));
    for (const std::string& each : words) {
      INFO(each);
      CHECK(each.find("rank " + std::to_string(odd) + " called khoroAllReduce(501") !=
            std::string::npos);
    }
  });
}

TEST_CASE("a rank that never comes is named at the deadline, and no later than 1 s after",
          "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(50, [](std::uint64_t seed) {
    const int late = static_cast<int>(seed % ranks);
    VirtualJob job(VirtualJob::drawn(seed, ranks));
    std::vector<Outcome> outcomes(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      job.communicator(rank).set_deadline(std::chrono::seconds(30));
      if (rank != late)
        job.play(rank, [&, rank] {
          play_rank(job, seed, rank, 6, outcomes[static_cast<std::size_t>(rank)]);
        });
    }
    REQUIRE(job.run() == test::VirtualSystem::End::all_ended);
    CHECK(job.system().now() < std::chrono::seconds(31));
    for (int rank = 0; rank < ranks; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank == late) continue;
      INFO(outcome.words);
      CHECK(outcome.code == Code::timeout);
      CHECK(outcome.words.find("rank " + std::to_string(late)) != std::string::npos);
    }
  });
}

TEST_CASE("an abort frees every rank that waits", "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(100, [](std::uint64_t seed) {
    VirtualJob job(VirtualJob::drawn(seed, ranks));
    std::vector<Outcome> outcomes(ranks);
    for (int rank = 1; rank < ranks; ++rank)
      job.play(rank, [&, rank] {
        play_rank(job, seed + 3, rank, 50, outcomes[static_cast<std::size_t>(rank)]);
      });
    job.system().at(std::chrono::seconds(3), [&] { job.communicator(2).abort(); });
    REQUIRE(job.run() == test::VirtualSystem::End::all_ended);
    CHECK(job.system().now() < std::chrono::seconds(4));
    for (int rank = 1; rank < ranks; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      CHECK(outcome.code == Code::aborted);
      CHECK(outcome.words.find("rank 2 (pid 100") == 0);
      CHECK(outcome.words.find(") aborted the communicator") != std::string::npos);
    }
  });
}
