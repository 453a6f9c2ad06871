// SPDX-License-Identifier: Apache-2.0
#include "conformance/channel.h"

#include <map>
#include <random>
#include <string>

#include "base/settings.h"
#include "transport/registry.h"
#include "transport/shm/layout.h"
#include "transport/shm/shm.h"

using namespace khoro;

TEST_CASE("every transport keeps what a channel promises", "[transport]") {
  for (const TransportRow& row : transports()) {
    CAPTURE(row.name);
    conformance::check_channel({.make = row.make});
  }
}

TEST_CASE("a transport is found by its name, and can be asked for", "[transport]") {
  for (const TransportRow& row : transports()) {
    CHECK(find_transport(row.name) == &row);
    CHECK_NOTHROW(Settings().choose("KHORO_TRANSPORT=" + std::string(row.name)));
  }
  CHECK(find_transport("carrier pigeon") == nullptr);
}

TEST_CASE("a channel in shared memory holds what its messages have needed", "[transport]") {
  conformance::Pair pair({.make = make_shm}, test::Spaces::apart);
  const Transport& owner = *pair.transports[1];
  const std::uint32_t lines = shm::lines_of(pair.shape.slots);
  const auto pass = [&](std::size_t bytes) {
    for (std::uint32_t i = 0; i < 3 * lines; ++i) {
      pair.send(bytes);
      REQUIRE(conformance::holds(pair.observe().data, bytes, pair.sender->published()));
      pair.receiver->release();
    }
    return owner.bytes_held();
  };
  const std::uint64_t page = shm::page_bytes;
  const std::uint64_t in_lines = pass(40);
  CHECK(in_lines <= 4 * page);  // the directory, and a page of lines
  CHECK(pass(41) == in_lines + lines * page);
  CHECK(pass(pair.shape.small_bytes()) == in_lines + lines * page);
  const std::uint64_t short_ones = in_lines + lines * page + pair.shape.parts_bytes;
  CHECK(pass(ChannelShape::part_most) == short_ones);
  for (const std::size_t bytes : {4097, 10'000, 32'768, 50'000}) CHECK(pass(bytes) == short_ones);
  pair.sender->use_all_slots();
  CHECK(pass(pair.shape.slot_bytes) == short_ones + lines * pair.shape.slot_bytes);
  CHECK(pair.transports[0]->bytes_held() == 0);  // it owns nothing of it
}

TEST_CASE("messages of any sizes share the parts, and two of them always have room",
          "[transport]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    conformance::Pair pair({.make = make_shm}, test::Spaces::apart);
    std::mt19937_64 random(seed);
    std::uint64_t received = 0;
    std::map<std::uint64_t, std::size_t> sent;  // what is under way, by number
    pair.send(8);
    sent[1] = 8;
    for (int step = 0; step < 3000; ++step) {
      const std::size_t bytes = 41 + random() % (std::size_t{1} << (6 + random() % 11));
      std::byte* const room =
          random() % 2 == 0 || sent.size() < 2 ? pair.sender->try_acquire(bytes) : nullptr;
      if (sent.size() < 2) REQUIRE(room != nullptr);
      if (room != nullptr) {
        REQUIRE(pair.sender->try_acquire(bytes) == room);
        const std::uint64_t number = pair.sender->published() + 1;
        conformance::fill(room, bytes, number);
        pair.sender->publish({conformance::digest, bytes, Form::dtype});
        sent[number] = bytes;
      }
      if (random() % 64 == 0) pair.sender->use_all_slots();
      if (random() % 2 == 0 || sent.empty()) continue;
      const Message& message = pair.observe();
      REQUIRE(message.head.bytes == sent.begin()->second);
      REQUIRE(conformance::holds(message.data, message.head.bytes, ++received));
      sent.erase(sent.begin());
      pair.receiver->release();
    }
  }
}
