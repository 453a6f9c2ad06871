// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/stripes.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/random.h"
#include "rendezvous/frame.h"
#include "rendezvous/host.h"
#include "support/catch.h"
#include "support/descriptors.h"

using namespace khoro;
using test::open_descriptors;

namespace {

Guest striped(int rank, int ranks, int stripes, const char* family = "auto") {
  Guest made = guest(rank, ranks);
  made.stripes = stripes;
  made.listener = listen_for_stripes("", family);
  return made;
}

/// What `from` says on a stripe arrives at `to` on the same one.
bool carries(const Stripes& from, const Stripes& to, int a, int b) {
  const auto& here = from[static_cast<std::size_t>(b)];
  const auto& there = to[static_cast<std::size_t>(a)];
  if (here.size() != there.size() || here.empty()) return false;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto word = static_cast<std::uint32_t>(draw_random());
    std::uint32_t heard = 0;
    if (::send(here[i].number(), &word, sizeof word, MSG_NOSIGNAL) != sizeof word) return false;
    pollfd polled{there[i].number(), POLLIN, 0};
    ::poll(&polled, 1, 20'000);
    if (::recv(there[i].number(), &heard, sizeof heard, 0) != sizeof heard) return false;
    if (heard != word) return false;
  }
  return true;
}

/// A connection to a listener, as a stranger makes it.
Descriptor call(const SocketAddress& address) {
  Descriptor socket = dial(address);
  pollfd polled{socket.number(), POLLOUT, 0};
  REQUIRE(::poll(&polled, 1, 20'000) == 1);
  return socket;
}

/// The called side of a pair of ranks that have met already: rank 1, or the calling one.
struct Alone {
  UniqueId id = UniqueId::draw();
  std::vector<Listener> listeners;
  std::vector<SocketAddress> addresses;

  Alone() {
    for (int rank = 0; rank < 2; ++rank) {
      listeners.push_back(listen_for_stripes("", "auto"));
      addresses.push_back(listeners.back().address);
    }
  }
  Outcome meet(int rank, double seconds, const UniqueId& with, Stripes* made = nullptr) {
    return outcome_of([&] {
      Stripes stripes = connect_stripes({with.communicator,
                                         with.key,
                                         rank,
                                         2,
                                         listeners[static_cast<std::size_t>(rank)],
                                         addresses,
                                         in_seconds(seconds),
                                         -1,
                                         {}});
      if (made != nullptr) *made = std::move(stripes);
    });
  }
};

}  // namespace

TEST_CASE("ranks that want stripes are connected, each with each", "[rendezvous]") {
  const int before = open_descriptors();
  for (const char* family : {"ipv4", "ipv6"}) {
    for (int ranks : {1, 2, 3, 7, 8}) {
      for (int stripes : {1, 3}) {
        CAPTURE(family, ranks, stripes);
        const UniqueId id = UniqueId::draw();
        Host host(id);
        const auto met = on_all_ranks(ranks, [&](int rank) {
          return join(id, striped(rank, ranks, stripes, family), in_seconds(60));
        });
        for (int a = 0; a < ranks; ++a)
          for (int b = 0; b < ranks; ++b)
            if (a != b) CHECK(carries(met[a].stripes, met[b].stripes, a, b));
        CHECK(host.ends_within(20));
      }
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("ranks of one process get stripes without meeting", "[rendezvous]") {
  std::vector<Listener> listeners;
  for (int rank = 0; rank < 3; ++rank) listeners.push_back(listen_for_stripes("", "auto"));
  const auto all = connect_stripes_within(listeners, 2);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      if (a != b) CHECK(carries(all[a], all[b], a, b));
}

TEST_CASE("strangers that call do no harm", "[rendezvous]") {
  Alone alone;
  auto called = std::async(std::launch::async, [&] {
    Stripes made;
    const Outcome outcome = alone.meet(1, 60, alone.id, &made);
    return outcome.code == Code::success && made[0].size() == 2;
  });
  for (int i = 0; i < 1'000; ++i) call(alone.addresses[1]);  // and leaves
  std::vector<Descriptor> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(call(alone.addresses[1]));
  Frame junk{};
  for (int kind = 0; kind < 256; ++kind) {
    draw_random({reinterpret_cast<std::uint8_t*>(&junk), sizeof junk});
    if (kind % 2 == 0) junk = Frame::make(static_cast<FrameKind>(kind));
    const Descriptor socket = call(alone.addresses[1]);
    const auto size = static_cast<std::size_t>(kind % 3 == 0 ? kind : sizeof junk);
    CHECK(::send(socket.number(), &junk, size, MSG_NOSIGNAL) >= 0);
  }
  CHECK(alone.meet(0, 60, alone.id).code == Code::success);
  CHECK(called.get());
}

TEST_CASE("who does not hold the key gets no stripe", "[rendezvous]") {
  Alone alone;
  UniqueId other = alone.id;
  other.key[0] ^= 1;
  auto called = std::async(std::launch::async, [&] { return alone.meet(1, 2, alone.id); });
  const Outcome caller = alone.meet(0, 2, other);
  CHECK(caller.code != Code::success);
  const Outcome outcome = called.get();
  CHECK(outcome.code == Code::timeout);
  CHECK_THAT(outcome.text, Catch::Contains("rank 1 has no connection to rank 0"));
}

TEST_CASE("the key of an id gets no stripe: only who met does", "[rendezvous]") {
  const UniqueId id = UniqueId::draw();
  Host host(id);
  std::vector<Guest> guests;
  for (int rank = 0; rank < 2; ++rank) guests.push_back(striped(rank, 2, 1));
  // In the queue of rank 1 before rank 0 is, whose stripe it claims.
  const Descriptor socket = call(guests[1].listener.address);
  const Frame greeting =
      Frame::make(FrameKind::hello, StripeHello{id.communicator, 0, 1, 0, 1, {}});
  REQUIRE(::send(socket.number(), &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);
  auto stranger = std::async(std::launch::async, [&] {
    Frame challenge{}, answer{};
    const int number = socket.number();
    if (::recv(number, &challenge, sizeof challenge, MSG_WAITALL) != sizeof challenge) return false;
    const Frame proof = Frame::make(
        FrameKind::joiner_proof, Proof{joiner_proof(id.key, greeting, challenge, ProofOf::caller)});
    ::send(number, &proof, sizeof proof, MSG_NOSIGNAL);
    return ::recv(number, &answer, sizeof answer, MSG_WAITALL) > 0;
  });
  const auto met = on_all_ranks(2, [&](int rank) {
    return join(id, std::move(guests[static_cast<std::size_t>(rank)]), in_seconds(60));
  });
  CHECK(carries(met[0].stripes, met[1].stripes, 0, 1));
  CHECK_FALSE(stranger.get());
}

TEST_CASE("a false listener is found out", "[rendezvous]") {
  // It echoes what it hears, which proves nothing.
  Alone alone;
  std::atomic<bool> stop{false};
  std::thread echo([&] {
    std::vector<Descriptor> open;
    while (!stop) {
      pollfd polled{alone.listeners[1].socket.number(), POLLIN, 0};
      ::poll(&polled, 1, 5);
      Descriptor accepted(
          ::accept4(alone.listeners[1].socket.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted) continue;
      Frame frame{};
      if (::recv(accepted.number(), &frame, sizeof frame, MSG_WAITALL) != sizeof frame) continue;
      frame.kind = FrameKind::challenge;
      frame.length = sizeof(Challenge);
      ::send(accepted.number(), &frame, sizeof frame, MSG_NOSIGNAL);
      if (::recv(accepted.number(), &frame, sizeof frame, MSG_WAITALL) != sizeof frame) continue;
      frame.kind = FrameKind::host_proof;
      ::send(accepted.number(), &frame, sizeof frame, MSG_NOSIGNAL);
      open.push_back(std::move(accepted));
    }
  });
  const Outcome outcome = alone.meet(0, 20, alone.id);
  stop = true;
  echo.join();
  CHECK(outcome.code == Code::remote_error);
  CHECK_THAT(outcome.text, Catch::Contains("for rank 1 does not hold the key"));
}

TEST_CASE("a rank that nobody listens for is named with its address", "[rendezvous]") {
  Alone alone;
  alone.listeners[1].socket = Descriptor();
  const Outcome outcome = alone.meet(0, 20, alone.id);
  CHECK(outcome.code == Code::system_error);
  CHECK_THAT(outcome.text, Catch::Contains(alone.addresses[1].text()));
}

TEST_CASE("a rank that fails while others connect ends it for them", "[rendezvous]") {
  const UniqueId id = UniqueId::draw();
  Host host(id);
  const auto outcomes = on_all_ranks(3, [&](int rank) {
    return outcome_of([&] {
      Guest mine = striped(rank, 3, 2);
      // The others call where nobody is.
      if (rank == 2) mine.listener.address = listen_for_stripes("", "auto").address;
      join(id, std::move(mine), in_seconds(rank == 2 ? 30 : 20));
    });
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.code != Code::success);
}
