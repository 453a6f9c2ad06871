// SPDX-License-Identifier: Apache-2.0
#include "communicator/wait.h"

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "support/catch.h"

using namespace khoro;

namespace {

/// A system whose clock moves when it is looked at, and that notes what it is asked for.
class NotingSystem final : public System {
 public:
  Time now() const noexcept override { return now_ += std::chrono::microseconds(1); }
  void park(std::span<const Doorbell> doorbells, Time until) noexcept override {
    ++parks;
    for (const Doorbell& doorbell : doorbells) all_armed &= doorbell.armed();
    now_ = std::max(now_, until);
    if (on_park) on_park();
  }
  void yield() noexcept override { ++yields; }

  int parks = 0;
  int yields = 0;
  bool all_armed = true;
  std::function<void()> on_park;

 private:
  mutable Time now_{};
};

/// Work that answers from a script; its last answer is repeated.
struct ScriptedWork {
  std::function<Progress()> answer;
  std::function<bool()> examined = [] { return true; };
  std::vector<DoorbellWord> words = std::vector<DoorbellWord>(1);
  std::vector<Doorbell> bells;
  bool stop = false;

  explicit ScriptedWork(std::function<Progress()> a) : answer(std::move(a)) {
    bells.emplace_back(words[0], -1);
  }
  Progress advance() { return answer(); }
  bool examine(Time) { return examined(); }
  bool stopped() const { return stop; }
  Time wake_by(Time now) const { return now + std::chrono::milliseconds(50); }
  std::span<const Doorbell> doorbells() const { return bells; }
};

}  // namespace

TEST_CASE("work that is done at once costs no look at the clock", "[communicator]") {
  NotingSystem system;
  ScriptedWork work([] { return Progress::done; });
  drive(work, system, {});
  CHECK(system.yields == 0);
  CHECK(system.parks == 0);
}

TEST_CASE("a wait spins, then yields, then sleeps with its doorbell armed", "[communicator]") {
  NotingSystem system;
  int looks = 0;
  ScriptedWork work([&] {
    ++looks;
    return system.parks == 3 ? Progress::done : Progress::waiting;
  });
  drive(work, system, {100, std::chrono::microseconds(10), 4'096});
  CHECK(looks > 100);
  CHECK(system.yields >= 5);
  CHECK(system.parks == 3);
  CHECK(system.all_armed);
  CHECK_FALSE(work.bells[0].armed());
}

TEST_CASE("work that comes between arming and sleeping is not slept over", "[communicator]") {
  NotingSystem system;
  ScriptedWork* self = nullptr;
  ScriptedWork work([&] { return self->bells[0].armed() ? Progress::done : Progress::waiting; });
  self = &work;
  drive(work, system, {0, Duration(0), 4'096});
  CHECK(system.parks == 0);
  CHECK_FALSE(work.bells[0].armed());
}

TEST_CASE("a failure that is seen while armed takes the doorbell back", "[communicator]") {
  NotingSystem system;
  ScriptedWork work([] { return Progress::waiting; });
  work.examined = [&] { return system.parks < 2; };
  drive(work, system, {0, Duration(0), 4'096});
  CHECK(system.parks == 2);
  CHECK_FALSE(work.bells[0].armed());
}

TEST_CASE("work that always moves still meets the clock and a stop", "[communicator]") {
  NotingSystem system;
  int looks = 0;
  ScriptedWork work([&] {
    ++looks;
    return Progress::moved;
  });
  work.examined = [] { return false; };
  drive(work, system, {0, Duration(0), 1'000});
  CHECK(looks == 1'000);
  work.stop = true;
  looks = 0;
  drive(work, system, {0, Duration(0), 1'000});
  CHECK(looks == 1);
}

namespace {

/// The machine, counting who was woken by nothing but the clock.
class CountingSystem final : public System {
 public:
  Time now() const noexcept override { return machine().now(); }
  void park(std::span<const Doorbell> doorbells, Time until) noexcept override {
    ++parks;
    machine().park(doorbells, until);
    if (now() >= until) ++overslept;
  }
  void yield() noexcept override { machine().yield(); }

  std::atomic<int> parks{0};
  std::atomic<int> overslept{0};
};

/// One of two threads that wait for each other in turn.
struct Turn {
  std::array<std::atomic<int>, 2>& turns;
  int self;
  int round;
  const Doorbell& bell;
  Duration limit;

  Progress advance() const noexcept {
    return turns[static_cast<std::size_t>(1 - self)].load(std::memory_order_seq_cst) >= round
               ? Progress::done
               : Progress::waiting;
  }
  bool examine(Time) const noexcept { return true; }
  bool stopped() const noexcept { return false; }
  Time wake_by(Time now) const noexcept { return now + limit; }
  std::span<const Doorbell> doorbells() const noexcept { return {&bell, 1}; }
};

/// Two threads that sleep at once when they wait take `rounds` turns; none sleeps longer than
/// `limit` at a time.
void take_turns(CountingSystem& system, int rounds, Duration limit) {
  std::array<DoorbellWord, 2> words{};
  const std::array<Doorbell, 2> bells{Doorbell(words[0], -1), Doorbell(words[1], -1)};
  std::array<std::atomic<int>, 2> turns{};
  const auto play = [&](int self) {
    for (int round = 1; round <= rounds; ++round) {
      turns[static_cast<std::size_t>(self)].exchange(round, std::memory_order_seq_cst);
      bells[static_cast<std::size_t>(1 - self)].ring();
      Turn turn{turns, self, round, bells[static_cast<std::size_t>(self)], limit};
      drive(turn, system, {0, Duration(0), 4'096});
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

}  // namespace

TEST_CASE("no sleeper is woken by its clock alone", "[communicator]") {
  CountingSystem system;
  take_turns(system, 20'000, std::chrono::seconds(20));
  CHECK(system.parks > 0);
  CHECK(system.overslept == 0);
}

#ifdef KHORO_TEST_SWITCHES
TEST_CASE("a planted lost wake-up is noticed", "[communicator]") {
  CountingSystem system;
  lose_wakeups(1);
  for (int i = 0; i < 100 && system.overslept == 0; ++i)
    take_turns(system, 20, std::chrono::milliseconds(20));
  lose_wakeups(0);
  CHECK(system.overslept > 0);
}
#endif
