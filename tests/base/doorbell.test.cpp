// SPDX-License-Identifier: Apache-2.0
#include "base/doorbell.h"

#include <atomic>
#include <thread>

#include "base/hash.h"
#include "base/settings.h"
#include "base/system.h"
#include "support/catch.h"

using namespace khoro;

namespace {

// Only a wake-up that never comes takes that long.
constexpr Duration patience = std::chrono::seconds(3);

struct alignas(128) Side {
  DoorbellWord word{};
  alignas(64) std::atomic<std::uint64_t> work{0};
  Descriptor descriptor = make_doorbell_descriptor();
  Doorbell doorbell{word, descriptor.number()};
};

enum class Wait { fine, lost };

// Waits until `work` reaches `goal`, asleep as the protocol says after a short spin. Work that is
// there when the time is over means that nobody woke the sleeper.
Wait wait_for(Side& mine, const std::atomic<std::uint64_t>& work, std::uint64_t goal,
              std::uint32_t kind) {
  for (std::uint64_t spins = mix(goal) % 256; spins > 0; --spins) {
    if (work.load(std::memory_order_seq_cst) >= goal) return Wait::fine;
  }
  const Time until = machine().now() + patience;
  while (true) {
    mine.doorbell.arm(kind);
    const bool there = work.load(std::memory_order_seq_cst) >= goal;
    if (!there) machine().park({&mine.doorbell, 1}, until);
    mine.doorbell.disarm();
    if (there) return Wait::fine;
    if (machine().now() >= until) return Wait::lost;
  }
}

Wait play(Side& mine, Side& other, std::uint64_t rounds, std::uint32_t kind) {
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    other.work.exchange(round, std::memory_order_seq_cst);
    other.doorbell.ring();
    if (wait_for(mine, mine.work, round, kind) == Wait::lost) return Wait::lost;
  }
  return Wait::fine;
}

// Two threads hand each other work and sleep in between. Says if a wake-up was lost.
Wait exchange_work(std::uint64_t rounds, std::uint32_t kind) {
  Side left, right;
  Wait of_right = Wait::fine;
  std::thread thread([&] { of_right = play(right, left, rounds, kind); });
  const Wait of_left = play(left, right, rounds, kind);
  thread.join();
  return of_left == Wait::lost || of_right == Wait::lost ? Wait::lost : Wait::fine;
}

}  // namespace

TEST_CASE("no wake-up is lost between threads that sleep on a futex", "[base]") {
  CHECK(exchange_work(100'000, DoorbellWord::on_futex) == Wait::fine);
}

TEST_CASE("no wake-up is lost between threads that sleep on a descriptor", "[base]") {
  CHECK(exchange_work(50'000, DoorbellWord::on_descriptor) == Wait::fine);
}

TEST_CASE("a sleeper on several doorbells wakes for any of them", "[base]") {
  Side first, second;
  for (Side* rung : {&first, &second}) {
    for (Side* side : {&first, &second}) side->doorbell.arm(DoorbellWord::on_descriptor);
    std::thread thread([rung] { rung->doorbell.ring(); });
    const Doorbell doorbells[] = {first.doorbell, second.doorbell};
    const Time until = machine().now() + patience;
    while (first.doorbell.armed() && second.doorbell.armed() && machine().now() < until) {
      machine().park(doorbells, until);
    }
    thread.join();
    CHECK(machine().now() < until);
    CHECK(!rung->doorbell.armed());
    for (Side* side : {&first, &second}) side->doorbell.disarm();
  }
}

TEST_CASE("a sleeper whom nobody rings returns at its time", "[base]") {
  Side side;
  for (const std::uint32_t kind : {DoorbellWord::on_futex, DoorbellWord::on_descriptor}) {
    const Time until = machine().now() + std::chrono::milliseconds(20);
    side.doorbell.arm(kind);
    while (machine().now() < until) machine().park({&side.doorbell, 1}, until);
    CHECK(side.doorbell.armed());
    CHECK(machine().now() < until + patience);
    side.doorbell.disarm();
  }
  const Time past = machine().now() - std::chrono::seconds(1);
  side.doorbell.arm(DoorbellWord::on_descriptor);
  machine().park({&side.doorbell, 1}, past);
  side.doorbell.disarm();
}

#ifdef KHORO_TEST_SWITCHES
TEST_CASE("a planted lost wake-up is found by the test of lost wake-ups", "[base]") {
  for (const std::uint32_t kind : {DoorbellWord::on_futex, DoorbellWord::on_descriptor}) {
    lose_wakeups(1);
    CHECK(exchange_work(100'000, kind) == Wait::lost);
    lose_wakeups(0);
  }
}

// Run alone, with KHORO_TEST_LOSE_WAKEUP set, by a test that wants to see it fail.
TEST_CASE("no wake-up is lost, whatever the environment plants", "[.planted]") {
  lose_wakeups(static_cast<std::uint64_t>(Settings::from_environment().lose_wakeup));
  CHECK(exchange_work(100'000, DoorbellWord::on_futex) == Wait::fine);
}
#endif
