// SPDX-License-Identifier: Apache-2.0
// A process dies at any moment of a drawn play; what its survivors come to.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/settings.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/script.h"
#include "support/seeds.h"
#include "support/virtual_job.h"

using namespace khoro;
using test::QuietLog;
using test::Script;
using test::VirtualJob;

namespace {

constexpr int ranks = 4;
constexpr Duration linger = std::chrono::milliseconds(5);

VirtualJob::Setup drawn_setup(std::uint64_t seed) {
  static const std::vector<int> layouts[] = {{0, 1, 2, 3}, {0, 0, 2, 2}, {0, 1, 0, 1},
                                             {0, 0, 0, 3}, {0, 1, 1, 1}, {0, 0, 2, 3},
                                             {0, 1, 2, 2}, {0, 0, 0, 0}};
  auto draw = [seed, i = seed](std::uint64_t bound) mutable {
    return mix(combine(seed, ++i)) % bound;
  };
  VirtualJob::Setup setup;
  setup.seed = seed;
  setup.processes = layouts[draw(std::size(layouts))];
  setup.settings.slots = 2 + static_cast<std::int64_t>(draw(8));
  setup.settings.slot_bytes = draw(2) == 0 ? 256 : 4096;
  if (draw(2) == 0) {
    const Algorithm& forced = *algorithms()[draw(algorithms().size())];
    setup.settings.algorithm =
        std::string(name(forced.collective)) + ":" + std::string(forced.name);
  }
  setup.longest_delay = Duration(draw(50'000));
  setup.wakes = draw(2) == 0 ? test::VirtualSystem::Wakes::for_a_reason
                             : test::VirtualSystem::Wakes::also_for_none;
  // Of one process nobody survives.
  setup.doomed = draw(8) == 0 ? -1 : setup.processes[draw(ranks)];
  if (setup.processes == std::vector<int>(ranks, 0)) setup.doomed = -1;
  return setup;
}

/// What one rank came to.
struct Outcome {
  std::vector<Time> began, ended;  // by act
  Code code = Code::success;
  std::string words;
  Time failed{0};
  bool idle = false;  // when it learned of its failure
  bool intact = true;
  bool keeps_failing = true;
  int acts() const { return static_cast<int>(ended.size()); }
};

/// A play and all that came of it.
class Played {
 public:
  explicit Played(const VirtualJob::Setup& setup)
      : job(setup), script(setup.seed, ranks, setup.settings), outcomes(ranks) {
    for (int rank = 0; rank < ranks; ++rank) job.play(rank, [this, rank] { perform(rank); });
    REQUIRE(job.run() == test::VirtualSystem::End::all_ended);
  }

  std::uint64_t digest() const {
    std::uint64_t digest = static_cast<std::uint64_t>(job.end().count());
    for (const Outcome& outcome : outcomes)
      digest = combine(combine(digest, hash_text(outcome.words)), outcome.ended.size());
    return digest;
  }

  VirtualJob job;
  Script script;
  std::vector<Outcome> outcomes;

 private:
  Outcome& of(int rank) { return outcomes[static_cast<std::size_t>(rank)]; }

  void perform(int rank) {
    Outcome& outcome = of(rank);
    Communicator& communicator = job.communicator(rank);
    try {
      for (int act = 0; act < Script::acts; ++act) {
        job.system().sleep(script.pause(rank, act));
        if (job.dead(rank)) return;
        outcome.began.push_back(job.system().now());
        script.play(communicator, rank, act);
        if (job.dead(rank)) return;
        outcome.ended.push_back(job.system().now());
      }
      if (mix(script.pause(rank, 0).count()) % 2 == 0) wait_idly(communicator, outcome);
    } catch (const Error& error) {
      if (job.dead(rank)) return;
      fail(outcome, error.code(), error.what());
      const int act = outcome.acts();
      outcome.intact = script.intact(rank, act);
      script.spoil(rank, act);
      keep_failing(communicator, outcome);
    }
    if (script.pause(rank, 1).count() % 2 == 0) job.leave(rank);
  }

  void fail(Outcome& outcome, Code code, const std::string& words) {
    outcome.code = code;
    outcome.words = words;
    outcome.failed = job.system().now();
  }

  /// It makes no call and still learns of a death.
  void wait_idly(Communicator& communicator, Outcome& outcome) {
    job.system().sleep(linger);
    const Code code = communicator.async_error();
    if (code == Code::success) {
      outcome.keeps_failing = !must_have_learned();
      return;
    }
    outcome.idle = true;
    fail(outcome, code, communicator.cause_words());
    keep_failing(communicator, outcome);
  }
  bool must_have_learned() const {
    return job.culprit() >= 0 && job.time_of_death() + VirtualJob::longest_notice < job.now();
  }

  static void keep_failing(Communicator& communicator, Outcome& outcome) {
    outcome.keeps_failing = communicator.async_error() == outcome.code;
    try {
      communicator.run({{CallKind::barrier}, {}});
      outcome.keeps_failing = false;
    } catch (const Error& error) {
      outcome.keeps_failing &= error.code() == outcome.code && error.what() == outcome.words;
    }
  }
};

/// "allreduce #3" of "... during allreduce #3; ..."; empty if it names none.
std::string operation_in(const std::string& words) {
  const auto during = words.find(" during ");
  if (during == std::string::npos) return "";
  return words.substr(during + 8, words.find_first_of(",;", during) - during - 8);
}

/// Some survivor that may have been the first to learn of the death was in this operation then, or
/// in none.
bool was_under_way(const Played& played, const std::string& operation, const Outcome& failed,
                   int own_process) {
  const bool reported = failed.words.find(", reported by rank ") != std::string::npos;
  for (int rank = 0; rank < ranks; ++rank) {
    if (played.job.doomed(rank)) continue;
    if (!reported && played.job.process(rank) != own_process) continue;
    const Outcome& outcome = played.outcomes[static_cast<std::size_t>(rank)];
    Time idle_since{0};
    for (int act = 0; act < static_cast<int>(outcome.began.size()); ++act) {
      const auto i = static_cast<std::size_t>(act);
      const Time end = i < outcome.ended.size() ? outcome.ended[i] : failed.failed;
      if (operation.empty() && idle_since <= failed.failed &&
          outcome.began[i] >= played.job.time_of_death())
        return true;
      if (outcome.began[i] <= failed.failed && end >= played.job.time_of_death() &&
          played.script.titles(rank, act).count(operation) > 0)
        return true;
      idle_since = end;
    }
    if (operation.empty() && outcome.began.size() == outcome.ended.size() &&
        idle_since <= failed.failed)
      return true;
  }
  return false;
}

/// A call that a rank came back from well gave the right bits, whatever happened to others.
void check_successes(Played& played) {
  for (int rank = 0; rank < ranks; ++rank) {
    const Outcome& outcome = played.outcomes[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << " after " << outcome.acts() << " acts: " << outcome.words);
    for (int act = 0; act < outcome.acts(); ++act) {
      INFO("act " << act);
      CHECK(played.script.right(rank, act));
      if (!played.script.is_barrier(act)) continue;
      for (const Outcome& other : played.outcomes) {
        REQUIRE(other.began.size() > static_cast<std::size_t>(act));
        CHECK(other.began[static_cast<std::size_t>(act)] <=
              outcome.ended[static_cast<std::size_t>(act)]);
      }
    }
  }
}

void check_failure(const Played& played, int rank) {
  const Outcome& outcome = played.outcomes[static_cast<std::size_t>(rank)];
  const int culprit = played.job.culprit();
  REQUIRE(culprit >= 0);
  CHECK(outcome.code == Code::peer_died);
  CHECK(outcome.words.find("rank " + std::to_string(culprit) + " (pid") == 0);
  CHECK(was_under_way(played, operation_in(outcome.words), outcome, played.job.process(rank)));
  CHECK(outcome.intact);
  CHECK(outcome.keeps_failing);
  CHECK(outcome.failed <= played.job.time_of_death() + std::chrono::milliseconds(100));
}

/// What the deaths came to, over all seeds.
struct Tally {
  int deaths = 0;
  int unnoticed = 0;  // no survivor needed the dead any more, or it had left
  int in_calls = 0;
  int idle = 0;
  int reported = 0;  // a survivor's notice came before that of the death
  int found = 0;     // the other way round
  int before_first_call = 0;
};

void check_survivors(Played& played, Tally& tally) {
  check_successes(played);
  CHECK(played.job.system().lost_wakeups() == 0);
  int failures = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (played.job.dead(rank)) {
      tally.before_first_call += played.outcomes[static_cast<std::size_t>(rank)].began.empty();
      continue;
    }
    const Outcome& outcome = played.outcomes[static_cast<std::size_t>(rank)];
    INFO("rank " << rank << " after " << outcome.acts() << " acts: " << outcome.words);
    if (outcome.code == Code::success) {
      CHECK(outcome.acts() == Script::acts);
      CHECK(outcome.keeps_failing);
      continue;
    }
    ++failures;
    ++(outcome.idle ? tally.idle : tally.in_calls);
    ++(outcome.words.find(", reported by") != std::string::npos ? tally.reported : tally.found);
    check_failure(played, rank);
  }
  const bool died = played.job.time_of_death() != never;
  tally.deaths += died;
  tally.unnoticed += died && failures == 0;
}

void check_undisturbed(Played& played) {
  check_successes(played);
  CHECK(played.job.system().lost_wakeups() == 0);
  for (const Outcome& outcome : played.outcomes) {
    INFO(outcome.words);
    CHECK(outcome.code == Code::success);
    CHECK(outcome.acts() == Script::acts);
  }
}

/// A moment of the undisturbed play: an event of the channels, or a time.
void draw_death(VirtualJob::Setup& setup, const Played& undisturbed) {
  const std::uint64_t drawn = mix(setup.seed + 77);
  if (drawn % 2 == 0)
    setup.events = drawn / 2 % (undisturbed.job.events() + 1);
  else
    setup.when = Duration(drawn / 2 % static_cast<std::uint64_t>(undisturbed.job.end().count()));
}

}  // namespace

TEST_CASE("1,000 plays with delays and a death end in right bits or the right error",
          "[communicator]") {
  const QuietLog quiet;
  Tally tally;
  test::for_each_seed(1'000, [&](std::uint64_t seed) {
    VirtualJob::Setup setup = drawn_setup(seed);
    Played undisturbed(setup);
    check_undisturbed(undisturbed);
    if (setup.doomed < 0) return;
    draw_death(setup, undisturbed);
    Played played(setup);
    check_survivors(played, tally);
  });
  if (test::first_seed || test::seed_count) return;
  INFO(tally.deaths << " deaths, " << tally.unnoticed << " unnoticed, " << tally.in_calls
                    << " failures in calls, " << tally.idle << " idle, " << tally.reported
                    << " reported, " << tally.found << " found, " << tally.before_first_call
                    << " before the first call");
  CHECK(tally.deaths > 600);
  CHECK(tally.unnoticed > 10);
  CHECK(tally.in_calls > 500);
  CHECK(tally.idle > 50);
  CHECK(tally.reported > 50);
  CHECK(tally.found > 100);
  CHECK(tally.before_first_call > 10);
}

TEST_CASE("a play with a death replays from its seed", "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(40, [](std::uint64_t seed) {
    const auto digest = [](std::uint64_t of) {
      VirtualJob::Setup setup = drawn_setup(of);
      setup.events = 30;
      return Played(setup).digest();
    };
    CHECK(digest(seed) == digest(seed));
    CHECK(digest(seed) != digest(seed + 1'000'000));
  });
}
