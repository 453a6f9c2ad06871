// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "conformance/channel.h"
#include "support/virtual_system.h"
#include "transport/registry.h"
#include "transport/wrap/death.h"
#include "transport/wrap/delay.h"
#include "transport/wrap/trace.h"

using namespace khoro;
using conformance::digest;
using conformance::Pair;
using conformance::Subject;
using test::Spaces;
using test::VirtualSystem;
using Kind = TraceEvent::Kind;

namespace {

constexpr Duration longest = std::chrono::microseconds(20);

Subject delayed(const TransportRow& row, System& system, std::uint64_t seed) {
  const auto make = [&row, &system, seed](const TransportSetup& setup) {
    const auto rank = static_cast<std::size_t>(setup.rank);
    return make_delay(row.make(setup),
                      {system, setup.endpoints[rank].doorbell, seed + rank, longest});
  };
  return {make, &system};
}

}  // namespace

TEST_CASE("a traced transport keeps what a channel promises", "[transport]") {
  for (const TransportRow& row : transports()) {
    CAPTURE(row.name);
    std::atomic<std::uint64_t> events{0};
    const auto count = [&](const TraceEvent&) { ++events; };
    conformance::check_channel(
        {.make = [&](const TransportSetup& setup) { return make_trace(row.make(setup), count); }});
    CHECK(events > 100'000);
  }
}

TEST_CASE("a delayed transport keeps what a channel promises", "[transport]") {
  for (const TransportRow& row : transports()) {
    CAPTURE(row.name);
    VirtualSystem system(11);
    conformance::check_channel(delayed(row, system, 1));
    const Subject real = delayed(row, machine(), 2);
    conformance::check_processes(real, 500);
    conformance::check_threads(real, Spaces::one, 500);
  }
}

TEST_CASE("a transport on which nobody ever dies keeps what a channel promises", "[transport]") {
  for (const TransportRow& row : transports()) {
    CAPTURE(row.name);
    Fate fate(~std::uint64_t{0});
    VirtualSystem system(11);
    const auto make = [&](const TransportSetup& setup) {
      return make_death(row.make(setup), fate);
    };
    conformance::check_channel({make, &system});
    CHECK(!fate.dead());
  }
}

TEST_CASE("two ranks exchange messages in a virtual world, whatever the delays", "[transport]") {
  for (const TransportRow& row : transports()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(row.name, seed);
      VirtualSystem system(seed);
      const Subject subject = delayed(row, system, seed);
      const test::Arenas arenas(2, 16 << 20, Spaces::apart);
      // Sockets are of the real world.
      if (row.make(arenas.setup(0))->descriptor() >= 0) continue;
      int fine = 0;
      for (int rank = 0; rank < 2; ++rank) {
        system.spawn([&, rank] { fine += conformance::play(subject, arenas, rank, 200); });
      }
      CHECK(system.run() == VirtualSystem::End::all_ended);
      CHECK(fine == 2);
    }
  }
}

TEST_CASE("a delay holds messages back, and changes with the seed", "[transport]") {
  const auto arrivals = [](std::uint64_t seed) {
    VirtualSystem system(1);
    Pair pair(delayed(transports()[0], system, seed), Spaces::apart);
    std::vector<Duration> times;
    for (int i = 0; i < 20; ++i) {
      pair.send(8);
      const Time start = system.now();
      pair.observe();
      pair.receiver->release();
      times.push_back(system.now() - start);
    }
    return times;
  };
  const std::vector<Duration> times = arrivals(5);
  CHECK(times == arrivals(5));
  CHECK(times != arrivals(6));
  CHECK(*std::max_element(times.begin(), times.end()) > longest / 2);
  CHECK(*std::max_element(times.begin(), times.end()) <= longest + std::chrono::microseconds(2));
}

TEST_CASE("a sleeper that looked for a message held back is not left asleep", "[transport]") {
  VirtualSystem system(1);
  Pair pair(delayed(transports()[0], system, 3), Spaces::apart);
  const Doorbell own = pair.arenas.doorbell(1);
  int held = 0;
  for (int i = 0; i < 20; ++i) {
    pair.send(8);
    own.arm(DoorbellWord::on_futex);
    if (pair.receiver->try_observe(digest).message == nullptr) {
      ++held;
      CHECK(!own.armed());
    }
    pair.observe();
    pair.receiver->release();
  }
  CHECK(held > 0);
}

TEST_CASE("a trace tells every event of both ends once and in order", "[transport]") {
  std::vector<TraceEvent> events;
  const auto sink = [&](const TraceEvent& event) { events.push_back(event); };
  Pair pair({.make =
                 [&](const TransportSetup& setup) {
                   return make_trace(transports()[0].make(setup), sink);
                 }},
            Spaces::apart);
  std::byte room[64];
  pair.receiver->try_observe(digest);
  pair.send(10);
  pair.observe();
  pair.observe();
  pair.receiver->release();
  pair.receiver->try_offer({room, sizeof room});
  pair.window();
  pair.window();
  pair.acquire(64);
  pair.sender->publish_put({digest, 64, Form::dtype});
  CHECK(pair.receiver->try_observe(digest + 1).status == Status::mismatch);

  const ChannelName to{1, 3}, from{0, 3};
  const std::vector<TraceEvent> expected = {
      {Kind::open_sender, to},        {Kind::open_receiver, from},  {Kind::acquire, to, 1, 10},
      {Kind::publish, to, 1, 10},     {Kind::observe, from, 1, 10}, {Kind::release, from, 1, 0},
      {Kind::offer, from, 1, 64},     {Kind::window, to, 1, 64},    {Kind::acquire, to, 2, 64},
      {Kind::publish_put, to, 2, 64}, {Kind::mismatch, from, 2, 0}};
  CHECK(events == expected);
}

TEST_CASE("a rank falls silent at its event, and its peer sees no more", "[transport]") {
  for (const TransportRow& row : transports()) {
    for (std::uint64_t events = 0; events < 8; ++events) {
      CAPTURE(row.name, events);
      Fate fate(events);
      const auto make = [&](const TransportSetup& setup) {
        auto plain = row.make(setup);
        return setup.rank == 0 ? make_death(std::move(plain), fate) : std::move(plain);
      };
      Pair pair({.make = make}, Spaces::apart);
      const auto back = pair.transports[1]->open_sender({0, 0}, pair.shape);
      const auto heard = pair.transports[0]->open_receiver({1, 0}, pair.shape);
      // Each round is three events of rank 0: a message published, one observed, one released.
      const std::uint64_t to_send = (events + 2) / 3, to_get = (events + 1) / 3;
      std::uint64_t sent = 0, got = 0, done = 0;
      for (int i = 0; i < 10 || (i < 100'000 && (sent < to_send || got < to_get)); ++i) {
        if (pair.sender->try_acquire(8) != nullptr) pair.sender->publish({digest, 8, Form::dtype});
        while (pair.receiver->try_observe(digest).message != nullptr) {
          ++sent;
          pair.receiver->release();
        }
        if (back->try_acquire(8) != nullptr) back->publish({digest, 8, Form::dtype});
        if (heard->try_observe(digest).message != nullptr) ++got, heard->release();
        done = back->released();
      }
      CHECK(fate.dead());
      CHECK(sent == to_send);
      CHECK(got == to_get);
      CHECK(done <= events / 3);
      CHECK(!heard->try_offer({}));
    }
  }
}
