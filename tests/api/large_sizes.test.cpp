// SPDX-License-Identifier: Apache-2.0
// Millions of elements, and more bytes than 31 and 32 bits hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/play_cases.h"

using namespace khoro;
using namespace khoro::test;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Of memory that the machine has left; 0 if it does not say.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::size_t kib = 0;
  while (file >> word)
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  return 0;
}

/// Why a test of so many bytes cannot run here; empty if it can.
std::string too_large(std::size_t bytes) {
#ifdef KHORO_SANITIZED
  (void)bytes;
  return "a sanitizer runs";
#else
  // Others use the machine too, and what is full is killed.
  if (available_bytes() / 3 >= bytes) return "";
  return "it needs " + std::to_string(bytes / mib) + " MiB, and a third of what is available is " +
         std::to_string(available_bytes() / 3 / mib);
#endif
}

/// A byte that differs from those 2^31 and 2^32 before it, and from the other ranks'.
std::uint8_t byte_of(int rank, std::size_t i) {
  return static_cast<std::uint8_t>((2 * static_cast<std::size_t>(rank) + 3) * i + (i >> 13) +
                                   91 * (i >> 31) + 37 * static_cast<std::size_t>(rank));
}

void fill(std::uint8_t* data, std::size_t count, int rank, std::size_t first) {
  for (std::size_t i = 0; i < count; ++i) data[i] = byte_of(rank, first + i);
}

std::uint8_t sum_of(int ranks, std::size_t i) {
  std::uint8_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum = static_cast<std::uint8_t>(sum + byte_of(rank, i));
  return sum;
}

template <class Byte>
void expect_bytes(const std::uint8_t* data, std::size_t count, Byte expected) {
  for (std::size_t i = 0; i < count; ++i)
    if (data[i] != expected(i)) throw std::runtime_error("byte " + std::to_string(i) + " is wrong");
}

struct Memory {
  explicit Memory(std::size_t size) : bytes(new std::uint8_t[size + 1]), size(size) {
    bytes[size] = guard;
  }
  void check() const { expect(bytes[size] == guard, "the byte behind the buffer was written"); }
  static constexpr std::uint8_t guard = 0xa5;
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t size;
};

void run_if_it_fits(int ranks, std::size_t bytes_of_rank, const RankBody& body) {
  const std::size_t bytes = static_cast<std::size_t>(ranks) * bytes_of_rank;
  const std::string why = too_large(bytes);
  if (!why.empty()) {
    WARN("skipped: " << why);
    return;
  }
  CHECK(on_ranks(Living::threads, ranks, "", body));
}

}  // namespace

TEST_CASE("an allreduce of more than 2^31 bytes is right", "[api]") {
  const std::size_t count = (std::size_t{1} << 31) + 1;
  run_if_it_fits(2, count, [=](khoroComm_t comm, int rank) {
    Memory memory(count);
    fill(memory.bytes.get(), count, rank, 0);
    succeed(khoroAllReduce(memory.bytes.get(), memory.bytes.get(), count, khoroInt8, khoroSum, comm,
                           nullptr),
            "allreduce");
    expect_bytes(memory.bytes.get(), count, [](std::size_t i) { return sum_of(2, i); });
    memory.check();
  });
}

TEST_CASE("a reducescatter whose last block begins beyond 2^30 bytes is right", "[api]") {
  const std::size_t block = 800'000'001;
  run_if_it_fits(3, 3 * block, [=](khoroComm_t comm, int rank) {
    Memory memory(3 * block);
    fill(memory.bytes.get(), 3 * block, rank, 0);
    const std::size_t own = static_cast<std::size_t>(rank) * block;
    std::uint8_t* mine = memory.bytes.get() + own;
    succeed(khoroReduceScatter(memory.bytes.get(), mine, block, khoroInt8, khoroSum, comm, nullptr),
            "reducescatter");
    expect_bytes(mine, block, [=](std::size_t i) { return sum_of(3, own + i); });
    if (rank + 1 < 3)
      expect(memory.bytes[own + block] == byte_of(rank, own + block), "the next block was written");
    memory.check();
  });
}

TEST_CASE("an allgather to more than 2^31 bytes is right", "[api]") {
  const std::size_t block = (std::size_t{1} << 30) + 3;
  run_if_it_fits(2, 2 * block, [=](khoroComm_t comm, int rank) {
    Memory memory(2 * block);
    std::uint8_t* mine = memory.bytes.get() + static_cast<std::size_t>(rank) * block;
    fill(mine, block, rank, 0);
    succeed(khoroAllGather(mine, memory.bytes.get(), block, khoroUint8, comm, nullptr),
            "allgather");
    for (int from = 0; from < 2; ++from)
      expect_bytes(memory.bytes.get() + static_cast<std::size_t>(from) * block, block,
                   [=](std::size_t i) { return byte_of(from, i); });
    memory.check();
  });
}

TEST_CASE("a broadcast and a message of more than 2^31 bytes are right", "[api]") {
  const std::size_t count = (std::size_t{1} << 31) + 1;
  run_if_it_fits(2, count, [=](khoroComm_t comm, int rank) {
    Memory memory(count);
    if (rank == 1) fill(memory.bytes.get(), count, 1, 0);
    succeed(
        khoroBroadcast(memory.bytes.get(), memory.bytes.get(), count, khoroUint8, 1, comm, nullptr),
        "broadcast");
    expect_bytes(memory.bytes.get(), count, [](std::size_t i) { return byte_of(1, i); });
    fill(memory.bytes.get(), count, 5, 0);
    if (rank == 0) {
      succeed(khoroSend(memory.bytes.get(), count, khoroUint8, 1, comm, nullptr), "send");
    } else {
      std::fill_n(memory.bytes.get(), count, std::uint8_t{0});
      succeed(khoroRecv(memory.bytes.get(), count, khoroUint8, 0, comm, nullptr), "receive");
    }
    expect_bytes(memory.bytes.get(), count, [](std::size_t i) { return byte_of(5, i); });
    memory.check();
  });
}

namespace {

/// An allreduce of floats, on threads so that all ranks share what is expected; every bit compared.
void play_large(int ranks, std::size_t count, const std::string& settings_text) {
  Settings settings;
  settings.choose(settings_text);
  PlanBook book(settings);
  const ElementPools pools;
  Case what;
  what.kind = CollectiveKind::allreduce;
  what.dtype = Dtype::f32;
  what.ranks = ranks;
  what.count = count;
  INFO(text(what) << ", " << settings_text);
  const std::string why = too_large(3 * static_cast<std::size_t>(ranks) * count * 4);
  if (!why.empty()) {
    WARN("skipped: " << text(what) << ": " << why);
    return;
  }
  std::mutex mutex;
  std::optional<Expectation> expected;
  std::vector<std::vector<float>> outputs(static_cast<std::size_t>(ranks));
  int ended = 0;
  CHECK(on_ranks(Living::threads, ranks, settings_text, [&](khoroComm_t comm, int rank) {
    {
      const std::lock_guard lock(mutex);
      if (!expected) expected.emplace(what, book, pools);
    }
    std::vector<float>& out = outputs[std::size_t(rank)];
    out.assign(count + 1, 77);
    succeed(make_call(what, {rank, expected->input(rank).data(), out.data(), comm}), text(what));
    expect(out.back() == 77, "the float behind the output was written");
    const std::lock_guard lock(mutex);
    if (++ended < ranks) return;
    std::vector<const std::byte*> all;
    for (std::vector<float>& each : outputs)
      all.push_back(reinterpret_cast<const std::byte*>(each.data()));
    expect(expected->all_right(all), text(what) + ": an output has other bits");
  }));
}

}  // namespace

TEST_CASE("millions of floats that no number of ranks divides are right", "[api]") {
  for (int ranks : {3, 8})
    for (std::size_t count : {10'556'587, 9'999'999, 12'345'678}) play_large(ranks, count, "");
}

TEST_CASE("slots of any legal size are right for millions of floats", "[api]") {
  for (const char* bytes : {"4096", "12288", "1003520", "16M"})
    play_large(2, 12'345'678, std::string("KHORO_SLOT_BYTES=") + bytes);
}

TEST_CASE("a size of slots that is not legal is refused with what is", "[api]") {
  for (const char* bytes : {"1000000", "4097", "3", "0", "-1", "", "4096 bytes", "1e6", "32M"}) {
    Child child([bytes] {
      const std::string settings = std::string("KHORO_SLOT_BYTES=") + bytes;
      khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
      config.settings = settings.c_str();
      khoroUniqueId id;
      khoroComm_t comm = nullptr;
      if (khoroGetUniqueId(&id) != khoroSuccess) return 1;
      if (khoroCommInitRankConfig(&comm, 1, id, 0, &config) != khoroInvalidArgument) return 2;
      const std::string words = khoroGetLastError(nullptr);
      const bool names_all = words.find("KHORO_SLOT_BYTES") != std::string::npos &&
                             words.find(std::string("'") + bytes + "'") != std::string::npos &&
                             words.find("multiple of 4K from 4K to 16M") != std::string::npos;
      return names_all ? 0 : 3;
    });
    INFO("'" << bytes << "'");
    CHECK(child.wait() == 0);
  }
}
