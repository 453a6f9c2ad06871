// SPDX-License-Identifier: Apache-2.0
#include "communicator/wait.h"

#include <functional>
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
