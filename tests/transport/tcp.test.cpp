// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "conformance/channel.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/wire.h"

using namespace khoro;
using conformance::digest;
using conformance::fill;
using conformance::holds;
using conformance::Pair;
using conformance::Subject;
using tcp::Cut;
using tcp::FrameKind;
using tcp::Header;
using test::Arenas;
using test::Spaces;

namespace {

const Subject subject{.make = make_tcp};
constexpr ChannelShape shape{.slots = 4, .slot_bytes = 65'536};

/// Rank 1 with a receiver and a sender, and rank 0 in the hands of the test.
struct Victim {
  explicit Victim(ChannelShape with = shape) : receiver(transport->open_receiver({0, 3}, with)) {
    sender = transport->open_sender({0, 3}, with);
  }

  void write(const void* data, std::size_t bytes, int stripe = 0) {
    CHECK(::send(arenas.socket(0, 1, stripe), data, bytes, MSG_NOSIGNAL) >= 0);
  }
  void write(const Header& frame) { write(&frame, sizeof frame); }
  void open() {
    Header frame = Header::make(FrameKind::open, 3);
    frame.number = shape.slots;
    frame.bytes = shape.slot_bytes;
    write(frame);
  }
  Header message(std::uint64_t number, std::uint64_t bytes) {
    Header frame = Header::make(FrameKind::data, 3);
    frame.number = static_cast<std::uint32_t>(number);
    frame.bytes = bytes;
    frame.digest = digest;
    return frame;
  }
  Observed observe() {
    Observed seen;
    for (int look = 0; look < 2'000 && seen.status == Status::ok && !seen.message; ++look) {
      seen = receiver->try_observe(digest);
      ::poll(nullptr, 0, look < 1'000 ? 0 : 1);
    }
    return seen;
  }

  Arenas arenas{2, 16 << 20, Spaces::apart};
  std::unique_ptr<Transport> transport = make_tcp(arenas.setup(1));
  std::unique_ptr<Receiver> receiver;
  std::unique_ptr<Sender> sender;
};

}  // namespace

TEST_CASE("a payload is cut into parts that come to the whole", "[transport]") {
  for (std::size_t stripes = 1; stripes <= tcp::most_stripes; ++stripes) {
    for (std::size_t bytes = 0; bytes < 600'000; bytes = bytes * 9 / 8 + 1) {
      const Cut cut(bytes, stripes);
      REQUIRE(cut.parts <= stripes);
      std::size_t all = 0;
      for (std::size_t i = 0; i < cut.parts; ++i) {
        REQUIRE(cut.first(i) == all);
        REQUIRE(cut.size(i) > 0);
        all += cut.size(i);
      }
      REQUIRE(all == bytes);
    }
  }
  CHECK(Cut(2 * Cut::least_part, 8).parts == 2);
  CHECK(Cut(2 * Cut::least_part - 1, 8).parts == 1);
}

TEST_CASE("bytes that come one by one make the same messages", "[transport]") {
  Victim victim;
  std::vector<std::byte> payload(1'000);
  for (std::uint64_t number = 1; number <= 4; ++number) {
    fill(payload.data(), payload.size(), number);
    const Header frame = victim.message(number, payload.size());
    for (std::size_t i = 0; i < sizeof frame; ++i) {
      CHECK(victim.receiver->try_observe(digest).message == nullptr);
      victim.write(reinterpret_cast<const std::byte*>(&frame) + i, 1);
    }
    for (std::byte& byte : payload) {
      CHECK(victim.receiver->try_observe(digest).message == nullptr);
      victim.write(&byte, 1);
    }
    const Observed seen = victim.observe();
    REQUIRE(seen.message != nullptr);
    CHECK(holds(seen.message->data, payload.size(), number));
    victim.receiver->release();
  }
}

TEST_CASE("parts of a message may come in any order", "[transport]") {
  std::mt19937_64 random(1);
  Victim victim;
  for (std::uint64_t number = 1; number <= 30; ++number) {
    std::vector<std::byte> payload(40'000 + random() % 25'000);
    fill(payload.data(), payload.size(), number);
    const Cut cut(payload.size(), Arenas::stripes);
    REQUIRE(cut.parts > 1);
    std::vector<std::size_t> order(cut.parts);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      CHECK(victim.receiver->try_observe(digest).message == nullptr);
      if (i == 0) victim.write(victim.message(number, payload.size()));
      victim.write(payload.data() + cut.first(i), cut.size(i), static_cast<int>(i));
    }
    const Observed seen = victim.observe();
    REQUIRE(seen.message != nullptr);
    CHECK(holds(seen.message->data, payload.size(), number));
    victim.receiver->release();
  }
}

TEST_CASE("what no correct peer sends is corrupt, at both ends and for good", "[transport]") {
  const auto spoilt = [](const auto& spoil) {
    Victim victim;
    Header frame = victim.message(1, 8);
    spoil(frame);
    victim.write(frame);
    const std::uint64_t payload = 0;
    victim.write(&payload, sizeof payload);
    const Status status = victim.observe().status;
    CHECK(victim.receiver->try_observe(digest).status == status);
    // A message of another call is no fault of the peer's.
    CHECK(victim.sender->status() == (status == Status::mismatch ? Status::ok : status));
    CHECK(victim.sender->try_acquire(8) == nullptr);
    return status;
  };
  using Spoil = void (*)(Header&);
  const Spoil ways[] = {
      [](Header& frame) { frame.mark ^= 1; },
      [](Header& frame) { frame.kind = FrameKind{0}; },
      [](Header& frame) { frame.kind = FrameKind{7}; },
      [](Header& frame) { frame.kind = FrameKind::put; },    // into a window that was not lent
      [](Header& frame) { frame.kind = FrameKind::offer; },  // for a receiver that is not there
      [](Header& frame) { frame.index = 4; },                // nobody opened it
      [](Header& frame) { frame.form = Form{2}; },
      [](Header& frame) { frame.number = 2; },
      [](Header& frame) { frame.number = 0; },
      [](Header& frame) { frame.bytes = shape.slot_bytes + 1; },
      [](Header& frame) { frame.bytes = ~std::uint64_t{0}; },
      [](Header& frame) { frame.releases = 1; },  // of what was never sent
      [](Header& frame) {
        frame.kind = FrameKind::credit;
        frame.releases = ~std::uint32_t{0};
      },
      [](Header& frame) {
        frame.kind = FrameKind::open;
        frame.number = tcp::max_slots + 1;
      },
  };
  for (const Spoil spoil : ways) CHECK(spoilt(spoil) == Status::corrupt);
  CHECK(spoilt([](Header& frame) { frame.digest ^= 1; }) == Status::mismatch);
}

TEST_CASE("more messages than there are slots are corrupt", "[transport]") {
  Victim victim;
  for (std::uint64_t number = 1; number <= shape.slots; ++number)
    victim.write(victim.message(number, 0));
  REQUIRE(victim.observe().message != nullptr);
  for (int look = 0; look < 100; ++look) victim.sender->try_window();  // takes in all there is
  CHECK(victim.sender->status() == Status::ok);
  victim.write(victim.message(shape.slots + 1, 0));
  conformance::wait_until(subject, [&] {
    victim.sender->try_window();
    return victim.sender->status() != Status::ok;
  });
  CHECK(victim.sender->status() == Status::corrupt);
}

TEST_CASE("a channel of another shape than the peer's is corrupt over sockets too", "[transport]") {
  Victim victim;
  Header frame = Header::make(FrameKind::open, 3);
  frame.number = shape.slots + 1;
  frame.bytes = shape.slot_bytes;
  victim.write(frame);
  for (int look = 0; look < 1'000 && victim.sender->status() == Status::ok; ++look)
    CHECK(victim.sender->try_acquire(8) == nullptr);
  CHECK(victim.sender->status() == Status::corrupt);
}

TEST_CASE("ends survive any bytes", "[transport]") {
  int corrupt = 0, seen = 0;
  for (std::uint64_t seed = 0; seed < 1'500; ++seed) {
    std::mt19937_64 random(seed);
    Victim victim;
    victim.open();
    std::vector<std::byte> window(1'000);
    if (seed % 3 == 0) REQUIRE(victim.receiver->try_offer({window.data(), window.size()}));
    std::uint64_t number = 0;
    for (int step = 0; step < 12; ++step) {
      if (victim.sender->try_acquire(8) != nullptr)
        victim.sender->publish({digest, 8, Form::dtype});
      Header frame =
          victim.message(++number, random() % 4 == 0 ? random() % 70'000 : random() % 40);
      if (random() % 3 == 0) frame.kind = static_cast<FrameKind>(random() % 8);
      if (random() % 4 == 0)
        reinterpret_cast<std::uint8_t*>(&frame)[random() % sizeof frame] =
            static_cast<std::uint8_t>(random());
      victim.write(frame);
      const std::vector<std::byte> payload(std::min<std::uint64_t>(frame.bytes, random() % 80));
      victim.write(payload.data(), payload.size(), static_cast<int>(random() % Arenas::stripes));
      const Observed observed = victim.receiver->try_observe(digest);
      corrupt += observed.status == Status::corrupt;
      if (observed.message == nullptr) continue;
      ++seen;
      // Under the checker for addresses this reads what must be there.
      std::uint8_t sum = 0;
      for (std::uint64_t i = 0; i < observed.message->head.bytes; ++i)
        sum = static_cast<std::uint8_t>(sum + std::to_integer<int>(observed.message->data[i]));
      CHECK(observed.message->head.bytes <= shape.slot_bytes);
      victim.receiver->release();
    }
  }
  CHECK(corrupt > 100);
  CHECK(seen > 100);
}

TEST_CASE("a peer that hangs up is seen after what it had sent", "[transport]") {
  Victim victim;
  victim.open();
  victim.write(victim.message(1, 0));
  victim.write(victim.message(2, 0));
  victim.arenas.hang_up(0, 1);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(victim.observe().message != nullptr);
    victim.receiver->release();
  }
  CHECK(victim.observe().status == Status::closed);
  CHECK(victim.sender->status() == Status::closed);
  CHECK(victim.sender->try_acquire(8) == nullptr);
  CHECK(victim.sender->flushed());
  // Who sleeps is not kept awake by it.
  pollfd polled{victim.transport->descriptor(), POLLIN, 0};
  CHECK(::poll(&polled, 1, 0) == 0);
}

TEST_CASE("what a peer had sent is not lost by an answer that it does not take", "[transport]") {
  Victim victim;
  victim.open();
  conformance::wait_until(subject, [&] { return victim.sender->try_acquire(8) != nullptr; });
  for (std::uint64_t number = 1; number <= 4; ++number) victim.write(victim.message(number, 0));
  victim.arenas.hang_up(0, 1);  // with input that it has not read: its system refuses more
  for (int i = 0; i < 4; ++i) {
    if (victim.sender->try_acquire(8) != nullptr) victim.sender->publish({digest, 8, Form::dtype});
    ::poll(nullptr, 0, 10);
    REQUIRE(victim.observe().message != nullptr);
    victim.receiver->release();
  }
  CHECK(victim.observe().status == Status::closed);
  CHECK(victim.sender->status() == Status::closed);
}

TEST_CASE("parts that were sent before a peer hung up are waited for", "[transport]") {
  Victim victim;
  std::vector<std::byte> payload(60'000);
  fill(payload.data(), payload.size(), 1);
  const Cut cut(payload.size(), Arenas::stripes);
  REQUIRE(cut.parts == 3);
  victim.write(victim.message(1, payload.size()));
  victim.write(payload.data(), cut.size(0));
  REQUIRE(::shutdown(victim.arenas.socket(0, 1, 0), SHUT_WR) == 0);
  for (int look = 0; look < 100; ++look) {
    const Observed seen = victim.receiver->try_observe(digest);
    CHECK((seen.message == nullptr && seen.status == Status::ok));
  }
  for (std::size_t i = 1; i < cut.parts; ++i)
    victim.write(payload.data() + cut.first(i), cut.size(i), static_cast<int>(i));
  const Observed seen = victim.observe();
  REQUIRE(seen.message != nullptr);
  CHECK(holds(seen.message->data, payload.size(), 1));
  victim.receiver->release();
  CHECK(victim.observe().status == Status::closed);
}

TEST_CASE("a peer that hangs up in the midst of a message is seen", "[transport]") {
  Victim victim;
  victim.write(victim.message(1, 60'000));
  const std::vector<std::byte> part(10'000);
  victim.write(part.data(), part.size());
  CHECK(victim.receiver->try_observe(digest).message == nullptr);
  victim.arenas.hang_up(0, 1);
  CHECK(victim.observe().status == Status::closed);
}

TEST_CASE("what sockets do not take at once is sent later and in order", "[transport]") {
  Pair pair(subject, Spaces::apart, {.slots = 64, .slot_bytes = 65'536});
  const int small = 4'096;
  for (int stripe = 0; stripe < Arenas::stripes; ++stripe) {
    const int from = pair.arenas.socket(0, 1, stripe);
    REQUIRE(::setsockopt(from, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  }
  // Nobody reads: more than the sockets hold.
  std::uint64_t number = 0, taken = 0;
  for (; number < 64; ++number) pair.send(65'536);
  CHECK(!pair.sender->flushed());
  CHECK(pair.sender->returned() < number);
  pollfd polled{pair.transports[0]->descriptor(), POLLIN, 0};
  for (; taken < number; pair.receiver->release()) {
    conformance::wait_until(subject, [&] {
      pair.sender->flushed();
      return pair.receiver->try_observe(digest).message != nullptr;
    });
    REQUIRE(holds(pair.observe().data, 65'536, ++taken));
  }
  CHECK(pair.sender->flushed());
  CHECK(pair.sender->returned() == number);
  pair.sender->released();
  CHECK(::poll(&polled, 1, 0) == 0);
}

TEST_CASE("every stripe has its share of the bytes, and they are counted", "[transport]") {
  Pair pair(subject, Spaces::apart);
  for (int i = 0; i < 10; ++i) {
    pair.send(65'536);
    pair.observe();
    pair.receiver->release();
  }
  const std::vector<std::uint64_t> bytes = pair.transports[0]->bytes_by_stripe();
  REQUIRE(bytes.size() == Arenas::stripes);
  const Cut cut(65'536, Arenas::stripes);
  CHECK(bytes[0] > 10 * (cut.size(0) + sizeof(Header)));
  CHECK(bytes[1] == 10 * cut.size(1));
  CHECK(bytes[2] == 10 * cut.size(2));
  CHECK(pair.transports[0]->bytes_sent() == bytes[0] + bytes[1] + bytes[2]);
}

TEST_CASE("what a peer sends whom nobody waits for keeps no sleeper awake", "[transport]") {
  const Arenas arenas(3, 16 << 20, Spaces::apart);
  std::vector<std::unique_ptr<Transport>> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.push_back(make_tcp(arenas.setup(rank)));
  const auto waited_for = ranks[0]->open_receiver({1, 0}, shape);
  const auto other = ranks[0]->open_receiver({2, 0}, shape);
  const auto sender = ranks[2]->open_sender({0, 0}, shape);
  conformance::wait_until(subject, [&] { return sender->try_acquire(8) != nullptr; });
  sender->publish({digest, 8, Form::dtype});
  pollfd polled{ranks[0]->descriptor(), POLLIN, 0};
  conformance::wait_until(subject, [&] {
    CHECK(waited_for->try_observe(digest).message == nullptr);
    return ::poll(&polled, 1, 0) == 0;
  });
  conformance::wait_until(subject, [&] { return other->try_observe(digest).message != nullptr; });
}

TEST_CASE("looking at sockets keeps errno", "[transport]") {
  Pair pair(subject, Spaces::apart);
  errno = 42;
  CHECK(pair.receiver->try_observe(digest).message == nullptr);
  pair.sender->try_acquire(8);
  pair.sender->try_window();
  CHECK(errno == 42);
}

TEST_CASE("a drain ends when all has gone out, or at its time", "[transport]") {
  Pair pair(subject, Spaces::apart, {.slots = 64, .slot_bytes = 65'536});
  const Time start = machine().now();
  for (int i = 0; i < 64; ++i) pair.send(65'536);
  pair.transports[0]->drain(machine(), std::chrono::milliseconds(300));
  if (!pair.sender->flushed()) CHECK(machine().now() >= start + std::chrono::milliseconds(300));
  bool drained = false;
  std::thread thread([&] {
    pair.transports[0]->drain(machine(), std::chrono::seconds(20));
    drained = true;
  });
  for (int i = 0; i < 64; ++i) {
    pair.observe();
    pair.receiver->release();
  }
  thread.join();
  CHECK(drained);
  CHECK(pair.sender->flushed());
}
