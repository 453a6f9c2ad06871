// SPDX-License-Identifier: Apache-2.0
#include "base/packet_socket.h"

#include <sys/socket.h>

#include <atomic>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.h"

using namespace khoro;

namespace {

std::pair<Descriptor, Descriptor> connected() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::span<const std::byte> bytes_of(const int& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// What comes first, waited for in a busy loop. `value` is what a packet held.
PacketStatus receive_next(const Descriptor& socket, int& value) {
  std::vector<Descriptor> none;
  for (;;) {
    const auto room = std::as_writable_bytes(std::span(&value, 1));
    const PacketStatus status = receive_packet(socket, room, none, 0);
    if (status != PacketStatus::again) return status;
  }
}

}  // namespace

TEST_CASE("a packet is received before the end that follows it at once") {
  constexpr int rounds = 20'000;
  // Its last words may come while the other end looks for them, and while it has something unread.
  const bool unread = GENERATE(false, true);
  std::atomic<int> turn{0};
  Descriptor last;
  std::thread speaker([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (turn != round) std::this_thread::yield();
      (void)send_packet(last, bytes_of(round));
      last = Descriptor();
      turn = -round;
    }
  });
  int received = 0, ended = 0;
  for (int round = 1; round <= rounds; ++round) {
    auto [mine, theirs] = connected();
    if (unread) (void)send_packet(mine, bytes_of(round));
    last = std::move(theirs);
    turn = round;
    int value = 0;
    received += receive_next(mine, value) == PacketStatus::done && value == round;
    ended += receive_next(mine, value) == PacketStatus::closed;
    while (turn != -round) std::this_thread::yield();
  }
  speaker.join();
  CHECK(received == rounds);
  CHECK(ended == rounds);
}
