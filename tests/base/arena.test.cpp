// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/shared_memory.h"
#include "support/catch.h"

using namespace khoro;

namespace {

constexpr std::uint64_t page = Arena::page;
constexpr std::uint64_t mib = 1 << 20;

/// An arena, and what a peer sees of it.
struct Seen {
  explicit Seen(std::uint64_t bytes)
      : arena(bytes), mapping(Mapping::open(arena.descriptor(), bytes, "the arena")) {}

  std::byte* there(const std::byte* data) const {
    return mapping.bytes().data() + arena.offset_of(data, 1).value();
  }
  std::uint64_t resident() const { return resident_bytes(mapping.bytes()); }

  Arena arena;
  Mapping mapping;
};

bool all_are(const std::byte* data, std::uint64_t bytes, int value) {
  return std::all_of(data, data + bytes,
                     [=](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

}  // namespace

TEST_CASE("what is allocated in an arena is zeroed, apart and seen by peers", "[base]") {
  Seen seen(64 * mib);
  std::mt19937_64 random(1);
  std::map<std::byte*, std::uint64_t> live;
  for (int i = 0; i < 3000; ++i) {
    if (live.size() < 40 && random() % 3 != 0) {
      const std::uint64_t bytes =
          random() % 8 == 0 ? random() % (4 * mib) + 1 : random() % 20'000 + 1;
      std::byte* const data = seen.arena.allocate(bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(data) % (bytes >= 2 * mib ? 2 * mib : page) == 0);
      CHECK(all_are(data, std::min<std::uint64_t>(bytes, 3 * page), 0));
      CHECK(data[bytes - 1] == std::byte{0});
      std::fill_n(data, std::min(bytes, page), static_cast<std::byte>(i | 1));
      data[bytes - 1] = static_cast<std::byte>(i | 1);
      CHECK(*seen.there(data) == *data);
      CHECK(seen.there(data + bytes - 1) - seen.there(data) ==
            static_cast<std::ptrdiff_t>(bytes - 1));
      CHECK(seen.arena.bytes_at(data) == (bytes + page - 1) / page * page);
      const auto after = live.emplace(data, bytes).first;
      if (std::next(after) != live.end()) CHECK(data + bytes <= std::next(after)->first);
      if (after != live.begin()) CHECK(std::prev(after)->first + std::prev(after)->second <= data);
    } else if (!live.empty()) {
      const auto chosen = std::next(live.begin(), static_cast<long>(random() % live.size()));
      CHECK(*chosen->first != std::byte{0});
      CHECK(chosen->first[chosen->second - 1] != std::byte{0});
      seen.arena.free(chosen->first);
      live.erase(chosen);
    }
  }
  for (const auto& [data, bytes] : live) seen.arena.free(data);
  CHECK(seen.resident() == 0);
  // Not in pieces that do not fit together again.
  std::byte* const all = seen.arena.allocate(64 * mib);
  seen.arena.free(all);
}

TEST_CASE("an arena says what it cannot give and what is not its own", "[base]") {
  Arena arena(4 * mib);
  CHECK_THROWS_WITH(arena.allocate(4 * mib + 1), Catch::Contains("4194305 bytes in a row"));
  CHECK_THROWS(arena.allocate(~std::uint64_t{0}));
  std::byte* const data = arena.allocate(3 * mib);
  CHECK_THROWS(arena.allocate(2 * mib));
  std::byte own[8];
  for (std::byte* const wrong : {own, data + page, data + 1, data + 4 * mib})
    CHECK_THROWS_AS(arena.free(wrong), Error);
  CHECK(!arena.offset_of(own, 1).has_value());
  CHECK(!arena.offset_of(data, 4 * mib + 1).has_value());
  CHECK(!arena.offset_of(data, ~std::uint64_t{0}).has_value());
  CHECK(arena.offset_of(data, 3 * mib).has_value());
  arena.free(data);
  CHECK_THROWS_AS(arena.free(data), Error);
  arena.free(arena.allocate(4 * mib));
}

TEST_CASE("moved pages keep address and contents, and are out of reach", "[base]") {
  Seen seen(64 * mib);
  std::byte* const data = seen.arena.allocate(8 * page);
  std::fill_n(data, 8 * page, std::byte{7});
  std::byte* const before = seen.there(data);
  REQUIRE(seen.arena.move(data + 2 * page + 5, page));  // which two pages have
  CHECK(all_are(data, 8 * page, 7));
  std::fill_n(before, 8 * page, std::byte{9});
  CHECK(all_are(data, 2 * page, 9));
  CHECK(all_are(data + 2 * page, 2 * page, 7));
  CHECK(all_are(data + 4 * page, 4 * page, 9));
  // Peers that look now see the new ones, but not in one piece with what is beside them.
  CHECK(*seen.there(data + 2 * page) == std::byte{7});
  CHECK(seen.arena.offset_of(data + 2 * page, 2 * page).has_value());
  CHECK(!seen.arena.offset_of(data + page, 2 * page).has_value());
  // Again, all of it.
  std::byte* const second = seen.there(data + 2 * page);
  REQUIRE(seen.arena.move(data, 8 * page));
  std::fill_n(before, 8 * page, std::byte{1});
  std::fill_n(second, 2 * page, std::byte{1});
  CHECK(all_are(data, 2 * page, 9));
  CHECK(all_are(data + 2 * page, 2 * page, 7));
  CHECK(seen.arena.offset_of(data, 8 * page).has_value());
  seen.arena.free(data);
  // Neither what was moved away from nor its addresses are given to anybody.
  std::vector<std::byte*> all;
  for (int i = 0; i < 1000; ++i) all.push_back(seen.arena.allocate(page));
  std::fill_n(before, 8 * page, std::byte{2});
  std::fill_n(second, 2 * page, std::byte{2});
  for (std::byte* const each : all) {
    CHECK(*each == std::byte{0});
    CHECK((each < data || each >= data + 8 * page));
  }
}

TEST_CASE("where an arena has no place left, moved pages are private", "[base]") {
  Seen seen(2 * mib);
  std::byte* const data = seen.arena.allocate(2 * mib);
  std::fill_n(data, 2 * mib, std::byte{3});
  std::byte* const before = seen.there(data);
  REQUIRE(seen.arena.move(data + page, page));
  std::fill_n(before, 2 * mib, std::byte{4});
  CHECK(all_are(data + page, page, 3));
  CHECK(data[2 * page] == std::byte{4});
  CHECK(!seen.arena.offset_of(data + page, page).has_value());
  CHECK(seen.arena.offset_of(data + 2 * page, page).has_value());
  REQUIRE(seen.arena.move(data, 3 * page));
  CHECK(all_are(data + page, page, 3));
  seen.arena.free(data);
  CHECK(!seen.arena.move(nullptr, page));
}

TEST_CASE("threads share an arena", "[base]") {
  Seen seen(256 * mib);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(i % 50 + 1) * 1000;
        std::byte* const data = seen.arena.allocate(bytes);
        std::fill_n(data, bytes, static_cast<std::byte>(t + 1));
        if (i % 50 == 7) wrong += !seen.arena.move(data, bytes);
        wrong += !all_are(data, bytes, t + 1);
        wrong += *seen.there(data) != *data;
        seen.arena.free(data);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(seen.resident() == 0);
}
