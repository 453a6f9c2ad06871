// SPDX-License-Identifier: Apache-2.0
#include "support/virtual_system.h"

#include <stdexcept>
#include <string>

#include "support/catch.h"

using namespace khoro;
using test::VirtualSystem;
using End = VirtualSystem::End;

namespace {

// Who took turns when, in a world of three ranks that yield and sleep.
std::string play(std::uint64_t seed) {
  VirtualSystem system(seed);
  std::string story;
  for (int rank = 0; rank < 3; ++rank) {
    system.spawn([&, rank] {
      for (int turn = 0; turn < 10; ++turn) {
        story += std::to_string(rank) + '@' + std::to_string(system.now().count()) + ' ';
        if (turn % 3 == 2) system.park({}, system.now() + std::chrono::microseconds(5));
        system.yield();
      }
    });
  }
  CHECK(system.run() == End::all_ended);
  return story;
}

}  // namespace

TEST_CASE("a virtual world replays from its seed, and differs from others", "[base]") {
  CHECK(play(1) == play(1));
  CHECK(play(1) != play(2));
}

TEST_CASE("in a virtual world a parked rank wakes by its doorbell or its time", "[base]") {
  VirtualSystem system(7);
  DoorbellWord word{};
  const Doorbell doorbell(word, -1);
  Time rung = never, slept = never;
  system.spawn([&] {
    doorbell.arm(DoorbellWord::on_futex);
    system.park({&doorbell, 1}, never);
    rung = system.now();
    doorbell.arm(DoorbellWord::on_futex);
    system.park({&doorbell, 1}, system.now() + std::chrono::hours(1));
    slept = system.now() - rung;
  });
  system.at(std::chrono::seconds(2), [&] { doorbell.ring(); });
  CHECK(system.run() == End::all_ended);
  CHECK(rung >= std::chrono::seconds(2));
  CHECK(rung < std::chrono::seconds(3));
  CHECK(slept == std::chrono::hours(1));
}

TEST_CASE("a virtual world in which all wait for ever says so", "[base]") {
  DoorbellWord word{};
  const Doorbell doorbell(word, -1);
  VirtualSystem system(7);
  system.spawn([&] {
    doorbell.arm(DoorbellWord::on_futex);
    system.park({&doorbell, 1}, never);
  });
  CHECK(system.run() == End::all_parked);

  VirtualSystem busy(7);
  busy.spawn([&] {
    while (true) busy.yield();
  });
  CHECK(busy.run(std::chrono::milliseconds(1)) == End::time_over);
}

TEST_CASE("what a rank of a virtual world throws reaches the test", "[base]") {
  VirtualSystem system(7);
  int handled = 0;
  for (int rank = 0; rank < 4; ++rank) {
    system.spawn([&] {
      // Ranks take turns while each handles an exception of its own.
      try {
        throw std::runtime_error("own");
      } catch (const std::runtime_error&) {
        system.yield();
        handled += std::string(std::current_exception() ? "own" : "") == "own";
      }
    });
  }
  CHECK(system.run() == End::all_ended);
  CHECK(handled == 4);

  system.spawn([] { throw std::logic_error("rank 0 failed"); });
  CHECK_THROWS_WITH(system.run(), "rank 0 failed");
  CHECK(system.run() == End::all_ended);
}
