// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/system.h"
#include "support/arenas.h"
#include "support/catch.h"
#include "support/child.h"
#include "transport/transport.h"

/// What every transport keeps, plain or wrapped: call check_channel() for it in a test case.
namespace khoro::conformance {

using test::Arenas;
using test::Spaces;

/// A transport under test.
struct Subject {
  std::function<std::unique_ptr<Transport>(const TransportSetup&)> make;
  /// What passes while the suite waits for something.
  System* system = &machine();
  int sockets = Arenas::stripes;
};

inline constexpr std::uint32_t digest = 0xfeedf00d;
inline constexpr std::size_t sizes[] = {0, 1, 47, 48, 49, 64, 4096, 65'536};

/// Fails the test, rather than hanging it, if `condition` does not come true.
inline void wait_until(const Subject& subject, const std::function<bool()>& condition) {
  const Time start = machine().now();
  while (!condition()) {
    subject.system->yield();
    if (machine().now() - start > std::chrono::seconds(20)) {
      throw std::runtime_error("what the test waits for never came");
    }
  }
}

/// Byte `at` of message `number`.
inline std::byte pattern(std::uint64_t number, std::size_t at) {
  return static_cast<std::byte>(mix(number * 1'000'003 + at / 8) >> (at % 8 * 8));
}
inline void fill(std::byte* room, std::size_t bytes, std::uint64_t number) {
  for (std::size_t at = 0; at < bytes; ++at) room[at] = pattern(number, at);
}
inline bool holds(const std::byte* data, std::size_t bytes, std::uint64_t number) {
  for (std::size_t at = 0; at < bytes; ++at) {
    if (data[at] != pattern(number, at)) return false;
  }
  return true;
}

/// Channel 0 -> 1 of two ranks in one thread.
struct Pair {
  Pair(const Subject& which, Spaces spaces, ChannelShape with = {})
      : subject(which), shape(with), arenas(2, 16 << 20, spaces, subject.sockets) {
    for (int rank = 0; rank < 2; ++rank) transports.push_back(subject.make(arenas.setup(rank)));
    sender = transports[0]->open_sender({1, 3}, shape);
    receiver = transports[1]->open_receiver({0, 3}, shape);
  }

  /// Memory of a rank that its peer can reach if it can reach any.
  std::byte* memory(int rank, std::size_t bytes) {
    if (Arena* const arena = arenas.arena(rank)) return arena->allocate(bytes);
    return memories.emplace_back(bytes).data();
  }

  std::byte* acquire(std::size_t bytes) {
    std::byte* room = nullptr;
    wait_until(subject, [&] { return (room = sender->try_acquire(bytes)) != nullptr; });
    return room;
  }
  void send(std::size_t bytes, Form form = Form::dtype) {
    fill(acquire(bytes), bytes, sender->published() + 1);
    sender->publish({digest, bytes, form});
  }
  const Message& observe() {
    Observed seen;
    wait_until(subject, [&] {
      seen = receiver->try_observe(digest);
      return seen.message != nullptr || seen.status != Status::ok;
    });
    REQUIRE(seen.status == Status::ok);
    return *seen.message;
  }
  const Window& window() {
    const Window* window = nullptr;
    wait_until(subject, [&] { return (window = sender->try_window()) != nullptr; });
    return *window;
  }
  /// Sends until no slot is left; says how many messages that took.
  std::uint64_t send_all(std::size_t bytes) {
    send(bytes);  // the first also waits for the channel to be open
    const std::uint64_t before = sender->published();
    for (int patience = 0; patience < 1000; ++patience) {
      std::byte* room = sender->try_acquire(bytes);
      subject.system->yield();
      if (room == nullptr) continue;
      fill(room, bytes, sender->published() + 1);
      sender->publish({digest, bytes, Form::dtype});
      patience = 0;
      REQUIRE(sender->published() < before + 10 * shape.slots);
    }
    return sender->published() - before + 1;
  }

  Subject subject;
  ChannelShape shape;
  Arenas arenas;
  std::vector<std::unique_ptr<Transport>> transports;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  std::deque<std::vector<std::byte>> memories;
};

inline void check_payloads(const Subject& subject, Spaces spaces) {
  INFO(__func__);
  Pair pair(subject, spaces);
  CHECK(pair.sender->payload_limit() == pair.shape.slot_bytes);
  std::uint64_t number = 0;
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t bytes : sizes) {
      const Form form = ++number % 2 == 0 ? Form::carry : Form::dtype;
      pair.send(bytes, form);
      const Message& message = pair.observe();
      CHECK(message.head.bytes == bytes);
      CHECK(message.head.digest == digest);
      CHECK(message.head.form == form);
      CHECK(!message.by_reference);
      CHECK((message.data == nullptr) == (bytes == 0));
      CHECK(reinterpret_cast<std::uintptr_t>(message.data) % 16 == 0);
      CHECK(holds(message.data, bytes, number));
      CHECK(&pair.observe() == &message);  // until it is released
      pair.receiver->release();
    }
  }
  CHECK(pair.sender->published() == number);
  CHECK(pair.sender->status() == Status::ok);
  CHECK(pair.receiver->try_observe(digest).message == nullptr);
}

/// Every slot keeps what was put into it until its release, for whole rounds of the ring.
inline void check_credit(const Subject& subject, std::uint32_t slots, std::size_t bytes) {
  INFO(__func__);
  Pair pair(subject, Spaces::apart, {.slots = slots, .slot_bytes = 4096});
  const std::uint64_t capacity = pair.send_all(bytes);
  CHECK(capacity >= slots);
  CHECK(capacity <= 2 * slots);
  if (slots < 8) CHECK(capacity == slots);

  std::uint64_t taken = 0;
  const auto take = [&] {
    const Message& message = pair.observe();
    REQUIRE(message.head.bytes == bytes);
    REQUIRE(holds(message.data, bytes, ++taken));
    pair.receiver->release();
  };
  // However releases are told, fewer than D unreleased messages leave room for one more.
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t count = 1 + mix(round) % slots;
    for (std::uint64_t i = 0; i < count; ++i) take();
    while (pair.sender->published() - taken < slots) pair.send(bytes);
  }
  while (taken < pair.sender->published()) take();
  CHECK(pair.receiver->try_observe(digest).message == nullptr);
  wait_until(subject, [&] { return pair.sender->released() + slots > taken; });
  CHECK(pair.sender->released() <= taken);
}

inline void check_room_is_kept(const Subject& subject) {
  INFO(__func__);
  Pair pair(subject, Spaces::apart);
  for (const std::size_t bytes : sizes) {
    std::byte* room = pair.acquire(bytes);
    CHECK(pair.acquire(bytes) == room);
    fill(room, bytes, 1);
    CHECK(pair.receiver->try_observe(digest).message == nullptr);  // not published yet
    pair.sender->publish({digest, bytes, Form::dtype});
    CHECK(holds(pair.observe().data, bytes, 1));
    pair.receiver->release();
  }
}

inline void check_mismatch(const Subject& subject) {
  INFO(__func__);
  Pair pair(subject, Spaces::apart);
  pair.send(8);
  pair.observe();
  CHECK(pair.receiver->try_observe(digest + 1).status == Status::mismatch);
  CHECK(pair.receiver->try_observe(digest + 1).message == nullptr);
  CHECK(pair.observe().head.bytes == 8);
}

inline void check_references(const Subject& subject, Spaces spaces) {
  INFO(__func__);
  Pair pair(subject, spaces);
  const std::size_t limit = pair.sender->payload_limit();
  std::byte* const data = pair.memory(0, limit);
  pair.acquire(0);  // the channel is open
  if (pair.sender->lending(data, limit) == Lending::none)
    return;  // an ability that a transport may lack
  for (std::uint64_t number = 1; number <= 100; ++number) {
    const std::size_t bytes = number == 1 ? limit : mix(number) % limit;
    fill(data, bytes, number);
    pair.acquire(0);
    pair.sender->publish_reference({digest, bytes, Form::carry}, data);
    const Message& message = pair.observe();
    if (message.by_reference) {  // the memory itself is seen, until it is released
      REQUIRE(spaces != Spaces::apart);
      if (spaces == Spaces::one) CHECK(message.data == data);
      CHECK(pair.sender->returned() == number - 1);
      if (bytes > 0) {
        data[bytes - 1] ^= std::byte{1};
        CHECK(!holds(message.data, bytes, number));
        data[bytes - 1] ^= std::byte{1};
      }
      CHECK(pair.receiver->intact());
    }
    CHECK(message.head.bytes == bytes);
    CHECK(message.head.form == Form::carry);
    CHECK(holds(message.data, bytes, number));
    pair.receiver->release();
    wait_until(subject, [&] { return pair.sender->returned() == number; });
  }
}

/// Memory that was lent is seen as it was until it is back, however much is under way.
inline void check_lending(const Subject& subject, Spaces spaces) {
  INFO(__func__);
  Pair pair(subject, spaces);
  const std::size_t bytes = pair.sender->payload_limit();
  std::vector<std::byte*> rooms(2 * pair.shape.slots);
  for (std::byte*& room : rooms) room = pair.memory(0, bytes);
  pair.acquire(0);
  if (pair.sender->lending(rooms[0], bytes) == Lending::none) return;
  std::uint64_t taken = 0;
  for (std::uint64_t number = 1; number <= 200;) {
    std::byte* const room = rooms[number % rooms.size()];
    const bool is_back = number <= rooms.size() || pair.sender->returned() >= number - rooms.size();
    if (is_back && pair.sender->try_acquire(0) != nullptr) {
      fill(room, bytes, number++);
      pair.sender->publish_reference({digest, bytes, Form::dtype}, room);
      continue;
    }
    subject.system->yield();
    if (taken + 1 == number) continue;  // what it lacks is on its way
    REQUIRE(holds(pair.observe().data, bytes, ++taken));
    pair.receiver->release();
  }
  for (; taken < 200; pair.receiver->release()) REQUIRE(holds(pair.observe().data, bytes, ++taken));
  wait_until(subject, [&] { return pair.sender->returned() == 200; });
  wait_until(subject, [&] { return pair.sender->flushed(); });
}

/// Puts and sends of one channel stay in order, and each put fills the oldest window.
inline void check_windows(const Subject& subject, Spaces spaces) {
  INFO(__func__);
  Pair pair(subject, spaces, {.slots = 4, .slot_bytes = 4096});
  std::vector<std::byte*> rooms(4);
  for (std::byte*& room : rooms) room = pair.memory(1, 4096);
  pair.acquire(0);
  CHECK(pair.sender->try_window() == nullptr);
  std::uint64_t number = 0;
  std::uint64_t offered = 0;
  const auto offer = [&] {
    return pair.receiver->try_offer({rooms[offered++ % rooms.size()], 4096, true});
  };
  for (int i = 0; i < 4; ++i) REQUIRE(offer());
  CHECK(!pair.receiver->try_offer({rooms[0], 1}));

  for (std::uint64_t put = 0; put < 50; ++put) {
    if (mix(put) % 2 == 0) {
      pair.send(100);
      CHECK(holds(pair.observe().data, 100, ++number));
      pair.receiver->release();
    }
    const std::size_t bytes = mix(put) % 4097;
    const Window& window = pair.window();
    CHECK(window.bytes == 4096);
    if (spaces == Spaces::apart) CHECK(window.data == nullptr);
    std::byte* room = pair.acquire(window.data != nullptr ? 0 : bytes);
    fill(window.data != nullptr ? window.data : room, bytes, ++number);
    pair.sender->publish_put({digest, bytes, Form::dtype});
    const Message& message = pair.observe();
    CHECK(message.head.bytes == bytes);
    if (message.by_reference && bytes > 0) CHECK(message.data == rooms[put % 4]);
    CHECK(holds(message.data, bytes, number));
    CHECK(!pair.receiver->try_offer({rooms[0], 1}));  // open until the release
    pair.receiver->release();
    REQUIRE(offer());
  }
}

/// A message comes where it was wanted if it is the expected one, else as always.
inline void check_aims(const Subject& subject, Spaces spaces) {
  INFO(__func__);
  Pair pair(subject, spaces);
  if (!pair.receiver->aims()) return;  // an ability that a transport may lack
  std::vector<std::byte> wanted(65'536 + 1);
  std::uint64_t number = 0;
  int landed = 0;
  for (int round = 0; round < 12; ++round) {
    for (const std::size_t bytes : sizes) {
      ++number;
      // Early, or after what comes has come perhaps; of another size, call or form now and then.
      const bool early = mix(number) % 4 != 0, fits = mix(number) % 3 != 0;
      const MessageHead expected{mix(number) % 7 == 0 ? digest + 1 : digest,
                                 fits ? bytes : bytes + 1, Form::dtype};
      const Form form = mix(number) % 5 == 0 ? Form::carry : Form::dtype;
      const auto sent = [&] { pair.send(bytes, form); };
      std::fill(wanted.begin(), wanted.end(), std::byte{0x5a});
      if (!early) sent();
      pair.receiver->aim(expected, wanted.data());
      if (early) sent();
      const Message& message = pair.observe();
      REQUIRE(message.head.bytes == bytes);
      REQUIRE(holds(message.data, bytes, number));
      const bool at_place = bytes > 0 && message.data == wanted.data();
      landed += at_place;
      CHECK(message.by_reference == at_place);
      const bool may = fits && expected.digest == digest && form == Form::dtype;
      if (at_place) CHECK(may);
      const std::size_t first_clean = at_place ? bytes : 0;
      CHECK(std::all_of(wanted.begin() + static_cast<std::ptrdiff_t>(first_clean), wanted.end(),
                        [](std::byte byte) { return byte == std::byte{0x5a}; }));
      pair.receiver->release();
    }
  }
  CHECK(landed > 0);
}

/// Memory that is named while a message waits is for that one, not for those behind it.
inline void check_aim_at_what_has_come(const Subject& subject) {
  INFO(__func__);
  Pair pair(subject, Spaces::apart);
  constexpr std::size_t bytes = 1'000;
  std::vector<std::vector<std::byte>> wanted(4, std::vector<std::byte>(bytes));
  for (std::size_t i = 0; i < wanted.size(); ++i) pair.send(bytes);
  pair.observe();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    pair.receiver->aim({digest, bytes, Form::dtype}, wanted[i].data());
    const Message& message = pair.observe();
    REQUIRE(holds(message.data, bytes, i + 1));
    for (std::size_t other = 0; other < wanted.size(); ++other)
      if (other != i) CHECK(message.data != wanted[other].data());
    pair.receiver->release();
  }
}

inline void check_opening(const Subject& subject) {
  INFO(__func__);
  const ChannelShape shape;
  Arenas arenas(2, 16 << 20, Spaces::apart);
  const auto left = subject.make(arenas.setup(0));
  const auto right = subject.make(arenas.setup(1));
  const auto sender = left->open_sender({1, 254}, shape);
  for (int i = 0; i < 100; ++i) {
    CHECK(sender->try_acquire(8) == nullptr);  // the other end is not open yet
    CHECK(sender->try_window() == nullptr);
    subject.system->yield();
  }
  CHECK_THROWS(left->open_sender({1, 254}, shape));
  CHECK_THROWS(left->open_sender({2, 0}, shape));
  CHECK_THROWS(left->open_sender({-1, 0}, shape));
  const auto receiver = right->open_receiver({0, 254}, shape);
  CHECK_THROWS(right->open_receiver({0, 254}, shape));
  wait_until(subject, [&] { return sender->try_acquire(8) != nullptr; });
  // A channel is of one pair, direction and index.
  const auto backward = right->open_sender({0, 254}, shape);
  const auto other = right->open_receiver({0, 0}, shape);
  sender->publish({digest, 8, Form::dtype});
  wait_until(subject, [&] { return receiver->try_observe(digest).message != nullptr; });
  CHECK(other->try_observe(digest).message == nullptr);
  CHECK(backward->try_acquire(8) == nullptr);
  CHECK(right->bytes_held() > 0);
  CHECK(left->reach(arenas.setup(0).endpoints[1]).has_value());
}

/// One rank of a ping-pong of messages of changing size, asleep on its doorbell while it waits.
/// False if a payload is wrong or a wake-up never comes.
inline bool play(const Subject& subject, const Arenas& arenas, int rank, std::uint64_t rounds) {
  const ChannelShape shape{.slots = 8, .slot_bytes = 4096};
  const auto transport = subject.make(arenas.setup(rank));
  const auto sender = transport->open_sender({1 - rank, 0}, shape);
  const auto receiver = transport->open_receiver({1 - rank, 0}, shape);
  const Doorbell plain = arenas.doorbell(rank);
  const Doorbell doorbell(*plain.word(), plain.descriptor(), transport->descriptor());
  System& system = *subject.system;
  const Time until = system.now() + std::chrono::seconds(60);
  std::uint64_t sent = 0, received = 0;
  bool right = true;
  const auto advance = [&] {
    const std::uint64_t before = sent + received;
    const std::size_t next = mix(sent + 1) % 5000 % (mix(sent) % 2 == 0 ? 49 : 4097);
    // The window of messages under way differs between the ranks and over time.
    const std::uint64_t ahead = 1 + mix(received / 64 + static_cast<std::uint64_t>(rank)) % 20;
    std::byte* room = nullptr;
    if (sent < rounds && sent < received + ahead && (room = sender->try_acquire(next))) {
      fill(room, next, ++sent);
      sender->publish({digest, next, Form::dtype});
    }
    const Message* message = received < rounds ? receiver->try_observe(digest).message : nullptr;
    if (message != nullptr) {
      right &= holds(message->data, message->head.bytes, ++received);
      receiver->release();
    }
    return sent + received != before;
  };
  while (sent < rounds || received < rounds || !sender->flushed()) {
    if (advance()) continue;
    doorbell.arm(kind_of_sleep({&doorbell, 1}));
    if (!advance()) system.park({&doorbell, 1}, until);
    doorbell.disarm();
    if (system.now() >= until) return false;
  }
  return right;
}

inline void check_threads(const Subject& subject, Spaces spaces, std::uint64_t rounds = 20'000) {
  INFO(__func__);
  const Arenas arenas(2, 16 << 20, spaces);
  bool fine = false;
  std::thread thread([&] { fine = play(subject, arenas, 1, rounds); });
  CHECK(play(subject, arenas, 0, rounds));
  thread.join();
  CHECK(fine);
}

inline void check_processes(const Subject& subject, std::uint64_t rounds = 20'000) {
  INFO(__func__);
  const Arenas arenas(2, 16 << 20, Spaces::apart);
  test::Child child([&] { return play(subject, arenas, 1, rounds) ? 0 : 1; });
  CHECK(play(subject, arenas, 0, rounds));
  CHECK(child.wait() == 0);
}

/// All of it. Threads and processes only on the machine's own clock.
inline void check_channel(const Subject& subject) {
  for (const Spaces spaces : {Spaces::one, Spaces::apart, Spaces::sharing}) {
    check_payloads(subject, spaces);
    check_windows(subject, spaces);
    check_references(subject, spaces);
    check_lending(subject, spaces);
    check_aims(subject, spaces);
  }
  for (const std::uint32_t slots : {1u, 2u, 3u, 7u, 8u, 16u}) {
    check_credit(subject, slots, 8);
    check_credit(subject, slots, 1000);
  }
  check_room_is_kept(subject);
  check_mismatch(subject);
  check_aim_at_what_has_come(subject);
  check_opening(subject);
  if (subject.system != &machine()) return;
  check_processes(subject);
  check_threads(subject, Spaces::apart);
  check_threads(subject, Spaces::one);
}

}  // namespace khoro::conformance
