// SPDX-License-Identifier: Apache-2.0

// A peer that shares memory may write anything there. An end must then say that it is corrupt, or
// see nothing, and must never hand out memory that is not the channel's.

#include <memory>
#include <random>

#include "base/error.h"
#include "conformance/channel.h"
#include "transport/shm/layout.h"
#include "transport/shm/shm.h"

using namespace khoro;
using namespace khoro::shm;
using conformance::digest;
using conformance::Pair;
using test::Spaces;

namespace {

const conformance::Subject subject{.make = make_shm, .sockets = 0};
constexpr ChannelShape shape{.slots = 4, .slot_bytes = 5000};

bool lies_in(std::span<const std::byte> area, const std::byte* data, std::uint64_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(area.data());
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return at >= first && at - first <= area.size() && bytes <= area.size() - (at - first);
}

// The receiver's block: the only one in the area of rank 1, right behind the directory.
Block block_of(const Pair& pair) {
  return Block::at(pair.arenas.area(1).data() + to_pages(indices * 2 * 8), shape);
}

// What the process of rank 0 shares, as that of rank 1 has it mapped.
std::span<const std::byte> shared(const Pair& pair) {
  return pair.arenas.setup(1).endpoints[0].arena;
}

// A word as a broken or spiteful peer might write it: small, huge, or nearly right.
std::uint64_t spite(std::mt19937_64& random, std::uint64_t right) {
  switch (random() % 6) {
    case 0:
      return random() % 16;
    case 1:
      return ~(random() % 16);
    case 2:
      return right ^ std::uint64_t{1} << random() % 64;
    case 3:
      return right + random() % 3;
    case 4:
      return right;
    default:
      return random();
  }
}

void spoil_line(MessageLine& line, std::uint64_t number, std::mt19937_64& random) {
  const std::uint64_t place = spite(random, test::Arenas::arena_bytes / 2);
  std::memcpy(line.payload, &place, sizeof place);
  const Meta right{.bytes = random() % 6000,
                   .place = static_cast<Place>(random() % 8),
                   .form = Form::dtype,
                   .put = random() % 2 == 0};
  line.meta = random() % 2 == 0 ? right.pack() : spite(random, right.pack());
  line.header = random() % 8 > 0 ? header(number, digest) : spite(random, header(number, digest));
}

}  // namespace

TEST_CASE("a receiver survives garbage in its message lines", "[transport]") {
  int corrupt = 0, seen = 0, referred = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const Spaces spaces = seed < 1500 ? Spaces::apart : Spaces::sharing;
    Pair pair(subject, spaces, shape);
    const Block block = block_of(pair);
    std::byte* const own = pair.memory(1, 100);
    if (seed % 2 == 0) REQUIRE(pair.receiver->try_offer({own, 100, true}));
    for (std::uint32_t at = 0; at < lines_of(shape.slots); ++at) {
      spoil_line(block.lines[at], at + 1, random);
    }
    for (int step = 0; step < 8; ++step) {
      const Observed observed = pair.receiver->try_observe(digest);
      corrupt += observed.status == Status::corrupt;
      if (observed.message == nullptr) continue;
      ++seen;
      CHECK(observed.status == Status::ok);
      const Message& message = *observed.message;
      if (spaces == Spaces::apart) CHECK(!message.by_reference);
      if (message.data == nullptr) CHECK(message.head.bytes == 0);
      if (message.data == own) {
        CHECK(message.head.bytes <= 100);
      } else if (message.data != nullptr) {
        referred += message.by_reference;
        CHECK(lies_in(message.by_reference ? shared(pair) : pair.arenas.area(1), message.data,
                      message.head.bytes));
      }
      pair.receiver->release();
    }
  }
  CHECK(corrupt > 100);
  CHECK(seen > 100);
  CHECK(referred > 5);
}

namespace {

// Two ranks with a channel each way, under one index. The last one told of releases only by
// messages when `credit` has been wiped.
struct BothWays {
  test::Arenas arenas{2, 16 << 20, Spaces::apart, 0};
  std::unique_ptr<Transport> left = make_shm(arenas.setup(0)), right = make_shm(arenas.setup(1));
  std::unique_ptr<Receiver> at_left = left->open_receiver({1, 0}, shape);
  std::unique_ptr<Receiver> at_right = right->open_receiver({0, 0}, shape);
  std::unique_ptr<Sender> from_left = left->open_sender({1, 0}, shape);
  std::unique_ptr<Sender> from_right = right->open_sender({0, 0}, shape);

  Block block(int rank) const {
    return Block::at(arenas.area(rank).data() + to_pages(indices * 2 * 8), shape);
  }
  static bool pass(Sender& from, Receiver& to) {
    if (from.try_acquire(8) == nullptr) return false;
    from.publish({digest, 8, Form::dtype});
    if (to.try_observe(digest).message == nullptr) return false;
    to.release();
    return true;
  }
};

}  // namespace

TEST_CASE("messages one way give back the slots of the other way", "[transport]") {
  BothWays channels;
  for (int round = 0; round < 100; ++round) {
    for (int rank : {0, 1}) channels.block(rank).credit->released = 0;
    CHECK(BothWays::pass(*channels.from_left, *channels.at_right));
    CHECK(BothWays::pass(*channels.from_right, *channels.at_left));
  }
  // Without answers the slots run out.
  int sent = 0;
  while (sent < 100 && BothWays::pass(*channels.from_left, *channels.at_right)) {
    channels.block(1).credit->released = 0;
    ++sent;
  }
  CHECK(sent <= static_cast<int>(lines_of(shape.slots)));
}

TEST_CASE("a sender survives garbage in what messages tell of releases", "[transport]") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    BothWays channels;
    for (int step = 0; step < 40; ++step) {
      const std::uint64_t published = channels.from_left->published();
      if (channels.from_right->try_acquire(8) != nullptr) {
        channels.from_right->publish({digest, 8, Form::dtype});
        const std::uint64_t at = (channels.from_right->published() - 1) % lines_of(shape.slots);
        channels.block(0).lines[at].releases = spite(random, published);
        if (channels.at_left->try_observe(digest).message != nullptr) channels.at_left->release();
      }
      const std::byte* room = channels.from_left->try_acquire(8);
      CHECK(channels.from_left->released() <= published);
      if (room == nullptr) continue;
      REQUIRE(lies_in(channels.arenas.area(1), room, 8));
      channels.from_left->publish({digest, 8, Form::dtype});
    }
  }
}

TEST_CASE("a sender survives garbage in directory, shape, credit and windows", "[transport]") {
  int corrupt = 0, rooms = 0, windows = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const Spaces spaces = seed < 1500 ? Spaces::apart : Spaces::sharing;
    Pair pair(subject, spaces, shape);
    const std::span<std::byte> peer = pair.arenas.setup(0).endpoints[1].arena;
    const Block block = block_of(pair);
    auto* directory = reinterpret_cast<std::atomic<std::uint64_t>*>(pair.arenas.area(1).data());
    if (seed % 3 == 0) {
      std::atomic<std::uint64_t>& entry = directory[3 * 2 + 0];
      entry = random() % 2 == 0 ? spite(random, entry) : random() % (20 << 20) / 4096 * 4096;
    }
    if (seed % 7 == 0) block.info->slots = static_cast<std::uint32_t>(spite(random, shape.slots));
    for (int step = 0; step < 20; ++step) {
      const std::uint64_t published = pair.sender->published();
      if (random() % 4 == 0) block.credit->released = spite(random, published);
      OfferLine& offer = block.offers[random() % shape.slots];
      if (random() % 8 == 0) {
        offer.bytes = spite(random, 100);
        offer.place = random() % 2 == 0 ? spite(random, test::Arenas::arena_bytes / 2) : 0;
        offer.number = spite(random, random() % 5);
      }
      const std::size_t bytes = random() % 5001;
      std::byte* room = pair.sender->try_acquire(bytes);
      const Window* window = pair.sender->try_window();
      if (window != nullptr && window->data != nullptr) {
        ++windows;
        CHECK(lies_in(peer, window->data, window->bytes));
      }
      CHECK(pair.sender->released() <= published);
      corrupt += pair.sender->status() == Status::corrupt;
      if (room == nullptr) continue;
      ++rooms;
      REQUIRE(lies_in(pair.arenas.area(1), room, bytes));
      std::memset(room, 0xee, bytes);
      if (window != nullptr) {
        pair.sender->publish_put({digest, bytes, Form::dtype});
      } else {
        pair.sender->publish({digest, bytes, Form::dtype});
      }
    }
  }
  CHECK(corrupt > 100);
  CHECK(rooms > 100);
  CHECK(windows > 20);
}

TEST_CASE("an address from another process is corrupt, wherever it stands", "[transport]") {
  Pair pair(subject, Spaces::apart, shape);
  const Block block = block_of(pair);
  pair.send(8);
  block.lines[0].meta = Meta{.bytes = 8, .place = Place::reference}.pack();
  CHECK(pair.receiver->try_observe(digest).status == Status::corrupt);
  CHECK(pair.receiver->try_observe(digest).status == Status::corrupt);  // and stays so

  // Nothing is known of the receiver's memory: a slot is used, wherever it is.
  block.offers[0].place = 4097;
  block.offers[0].number = 1;
  REQUIRE(pair.sender->try_window() != nullptr);
  CHECK(pair.sender->try_window()->data == nullptr);
}

TEST_CASE("a place outside of what a process shares is corrupt", "[transport]") {
  constexpr std::uint64_t size = test::Arenas::arena_bytes;
  for (const std::uint64_t place : {size, size - 7, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    Pair pair(subject, Spaces::sharing, shape);
    const Block block = block_of(pair);
    pair.send(8);
    std::memcpy(block.lines[0].payload, &place, sizeof place);
    block.lines[0].meta = Meta{.bytes = 8, .place = Place::reference}.pack();
    CHECK(pair.receiver->try_observe(digest).status == Status::corrupt);
    if (place == ~std::uint64_t{0}) continue;  // which says that the sender cannot reach it
    block.offers[0].place = place + 1;
    block.offers[0].bytes = 8;
    block.offers[0].number = 1;
    CHECK(pair.sender->try_window() == nullptr);
    CHECK(pair.sender->status() == Status::corrupt);
    CHECK(pair.sender->try_acquire(8) == nullptr);
  }
  // In it, but longer than any message is.
  Pair pair(subject, Spaces::sharing, shape);
  pair.send(8);
  std::memset(block_of(pair).lines[0].payload, 0, 8);
  block_of(pair).lines[0].meta = Meta{.bytes = 5001, .place = Place::reference}.pack();
  CHECK(pair.receiver->try_observe(digest).status == Status::corrupt);
}

TEST_CASE("what a failed rank has lent is not used", "[transport]") {
  Pair pair(subject, Spaces::sharing, shape);
  std::byte* const data = pair.memory(0, 5000);
  pair.send(8);
  CHECK(pair.observe().head.bytes == 8);
  pair.receiver->release();
  pair.acquire(0);
  REQUIRE(pair.sender->lending(data, 5000) == Lending::in_place);
  pair.sender->publish_reference({digest, 5000, Form::dtype}, data);
  CHECK(pair.observe().by_reference);
  CHECK(pair.receiver->intact());
  CHECK(pair.transports[0]->withdraw());
  CHECK(pair.observe().by_reference);
  CHECK(!pair.receiver->intact());
}

TEST_CASE("a put that comes after a failure does not reach the memory that was offered",
          "[transport]") {
  Pair pair(subject, Spaces::sharing, {.slots = 4, .slot_bytes = 3 * 4096});
  std::byte* const data = pair.memory(1, 5 * 4096);
  std::fill_n(data, 5 * 4096, std::byte{1});
  // Two windows, one of which is filled in time; the pages around them are nobody's affair.
  for (int i : {1, 2}) REQUIRE(pair.receiver->try_offer({data + i * 4096, 4096, true}));
  pair.acquire(0);
  std::byte* const first = pair.window().data;
  REQUIRE(first != nullptr);
  std::fill_n(first, 4096, std::byte{2});
  pair.sender->publish_put({digest, 4096, Form::dtype});
  CHECK(pair.observe().data == data + 4096);
  pair.receiver->release();
  pair.acquire(0);
  std::byte* const second = pair.window().data;
  REQUIRE(second != nullptr);
  std::fill_n(second, 2048, std::byte{3});  // and there it is stopped
  CHECK(pair.transports[1]->withdraw());
  CHECK(pair.transports[1]->withdraw());
  std::fill_n(second, 4096, std::byte{4});
  const auto all_are = [&](std::size_t first_byte, std::size_t end, int value) {
    return std::all_of(data + first_byte, data + end,
                       [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
  };
  CHECK(all_are(0, 4096, 1));
  CHECK(all_are(4096, 2 * 4096, 2));
  CHECK(all_are(2 * 4096, 2 * 4096 + 2048, 3));
  CHECK(all_are(2 * 4096 + 2048, 5 * 4096, 1));
  // The same addresses are good for the next communicator.
  Arena& arena = *pair.arenas.arena(1);
  const auto place = arena.offset_of(data + 2 * 4096, 4096);
  REQUIRE(place.has_value());
  CHECK(pair.arenas.setup(0).endpoints[1].arena[*place] == std::byte{3});
  CHECK(!arena.offset_of(data + 4096, 2 * 4096).has_value());
}

TEST_CASE("a window is offered by its place only if its pages can be taken away", "[transport]") {
  Pair pair(subject, Spaces::sharing, shape);
  std::byte* const data = pair.memory(1, 4096);
  REQUIRE(pair.receiver->try_offer({data + 1, 100, false}));
  REQUIRE(pair.receiver->try_offer({data, 4096, true}));
  pair.acquire(100);
  CHECK(pair.window().data == nullptr);
  pair.sender->publish_put({digest, 100, Form::dtype});
  pair.acquire(0);
  CHECK(pair.window().data != nullptr);
}

TEST_CASE("a put that nobody asked for is corrupt", "[transport]") {
  Pair pair(subject, Spaces::one, shape);
  const Block block = block_of(pair);
  pair.send(8);
  block.lines[0].meta = Meta{.bytes = 8, .place = Place::window, .put = true}.pack();
  CHECK(pair.receiver->try_observe(digest).status == Status::corrupt);

  Pair small(subject, Spaces::one, shape);
  std::byte own[100];
  REQUIRE(small.receiver->try_offer({own, sizeof own}));
  small.send(8);
  block_of(small).lines[0].meta = Meta{.bytes = 101, .place = Place::window, .put = true}.pack();
  CHECK(small.receiver->try_observe(digest).status == Status::corrupt);
}

TEST_CASE("a channel of another shape than the peer's is corrupt, not misread", "[transport]") {
  const test::Arenas arenas(2, 16 << 20, Spaces::apart);
  const auto left = make_shm(arenas.setup(0));
  const auto right = make_shm(arenas.setup(1));
  const auto sender = left->open_sender({1, 0}, {.slots = 8, .slot_bytes = 4096});
  const auto receiver = right->open_receiver({0, 0}, {.slots = 4, .slot_bytes = 4096});
  CHECK(sender->try_acquire(8) == nullptr);
  CHECK(sender->status() == Status::corrupt);
}

TEST_CASE("a rank whose memory is short, soft or full is refused with its name", "[transport]") {
  const test::Arenas arenas(2, 1 << 20, Spaces::apart);
  const auto message_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  TransportSetup setup = arenas.setup(0);
  const Descriptor tiny = make_shared_memory("tiny", 4096);
  const auto transport = make_shm(setup);
  setup.endpoints[1].memory = tiny.number();
  CHECK(message_of([&] { make_shm(setup); }).find("shared memory of rank 1: has 4096 bytes") == 0);
  CHECK(message_of([&] {
          transport->open_receiver({1, 0}, {.slots = 64});
        }).find("shm: no room for a channel from rank 1") == 0);
  CHECK(message_of([&] {
          transport->open_receiver({1, 0}, {.slots = 0});
        }).find("shm: a channel cannot have 0 slots") == 0);
}
