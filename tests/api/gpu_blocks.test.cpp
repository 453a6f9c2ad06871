// SPDX-License-Identifier: Apache-2.0
// Calls of communicators on virtual GPUs whose blocks differ in length: results have the bits of
// those on hosts, and faults are told in the same words.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/play_cases.h"
#include "support/scoped_environment.h"

using namespace khoro;
using namespace khoro::test;

namespace {

using namespace std::chrono_literals;

const std::string on_gpus = "KHORO_MEMORY=virtual";
const std::string deadline = ";KHORO_DEADLINE=60s";

/// With any algorithm that can do blocks that differ. All that the calls have alike is in `like`.
std::vector<Case> every_algorithm_of_blocks(Case like, const std::vector<std::size_t>& counts) {
  like.unequal = true;
  return every_algorithm(like, counts);
}

/// A rank's side of an exchange of floats between all ranks, block after block.
struct Exchange {
  /// `length(from, to)` is that of the block that goes that way.
  template <class Length>
  Exchange(khoroComm_t comm, int rank, int ranks, Length length)
      : gives(std::size_t(ranks)), gets(gives), from(gives), to(gives), memory(comm) {
    for (int peer = 0; peer < ranks; ++peer) {
      gives[std::size_t(peer)] = length(rank, peer);
      gets[std::size_t(peer)] = length(peer, rank);
    }
    std::exclusive_scan(gives.begin(), gives.end(), from.begin(), std::size_t{0});
    std::exclusive_scan(gets.begin(), gets.end(), to.begin(), std::size_t{0});
    const std::size_t given = from.back() + gives.back();
    floats.assign(given + to.back() + gets.back() + 1, -1.0f);
    for (int peer = 0; peer < ranks; ++peer)
      for (std::size_t i = 0; i < gives[std::size_t(peer)]; ++i)
        floats[from[std::size_t(peer)] + i] = value(rank, peer, i);
    memory.bring(std::as_writable_bytes(std::span(floats)));
    in = memory.at(floats.data());
    out = memory.at(floats.data() + given);
  }

  static float value(int from, int to, std::size_t i) {
    return static_cast<float>(100 * from + to) + static_cast<float>(i % 1000) / 1024;
  }
  /// On the memory's stream, or blocking.
  khoroResult_t call(khoroComm_t comm, khoroStream_t stream) const {
    return khoroAlltoAllV(in, gives.data(), from.data(), out, gets.data(), to.data(), khoroFloat32,
                          comm, stream);
  }
  void check(int rank) {
    memory.bring_back();
    const float* const here = floats.data() + (out - in);
    for (std::size_t peer = 0; peer < gets.size(); ++peer)
      for (std::size_t i = 0; i < gets[peer]; ++i)
        expect(here[to[peer] + i] == value(static_cast<int>(peer), rank, i),
               "an element of rank " + std::to_string(peer));
    expect(floats.back() == -1, "something behind the blocks was written");
  }

  std::vector<std::size_t> gives, gets, from, to;
  CaseMemory memory;
  std::vector<float> floats;
  float *in = nullptr, *out = nullptr;
};

std::string words_of_mismatch(khoroComm_t comm) {
  const khoroResult_t error = await_failure(comm);
  const std::string words = khoroGetLastError(comm);
  expect(error == khoroMismatch, std::string(khoroGetErrorString(error)) + ": " + words);
  return words;
}

}  // namespace

TEST_CASE("blocks of any lengths are right on GPUs, in place and not", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "4");
  for (const bool in_place : {false, true})
    for (const char* mode :
         {"KHORO_FLAGGED_BYTES=4096", "KHORO_FLAGGED_BYTES=0", "KHORO_DIRECT_BYTES=1"})
      play_cases(Living::threads,
                 every_algorithm_of_blocks({.kind = std::nullopt, .ranks = 4, .in_place = in_place},
                                           {0, 1, 2, 3, 15, 64, 129, 1023, 1024, 1025, 4097}),
                 on_gpus + ";" + mode);
}

TEST_CASE("blocks through memory of the host are as right", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "4");
  for (const Living living : {Living::threads, Living::processes})
    play_cases(living,
               every_algorithm_of_blocks({.kind = std::nullopt, .ranks = 4, .in_place = true},
                                         {1, 1025, 4097}),
               on_gpus + ";KHORO_PEER_ACCESS=off");
}

TEST_CASE("any number of ranks is right with blocks of any lengths, on part of the links",
          "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "8");
  const ScopedEnvironment machine(
      "KHORO_TOPO_FILE", KHORO_GOLDEN_FOLDER "/topologies/synth-hybrid-cube-mesh-8xv100.xml");
  for (int ranks = 1; ranks <= 12; ++ranks)
    play_cases(ranks % 2 == 0 ? Living::threads : Living::processes,
               every_algorithm_of_blocks(
                   {.kind = std::nullopt, .dtype = Dtype::bf16, .ranks = ranks}, {1, 37, 2100}),
               on_gpus);
}

TEST_CASE("elements of any type, at any address, go in blocks of any lengths", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  std::vector<Case> cases;
  for (const DtypeRow& dtype : dtypes())
    for (const CollectiveKind kind : {CollectiveKind::alltoall, CollectiveKind::reducescatter})
      for (const Alignment& alignment : alignments)
        cases.push_back({.kind = kind,
                         .unequal = true,
                         .dtype = dtype.dtype,
                         .ranks = 3,
                         .count = 1500,
                         .alignment = alignment,
                         .seed = cases.size()});
  play_cases(Living::threads, cases, on_gpus);
}

TEST_CASE("blocks may be of many tiles where slots are small, each of as many as it needs",
          "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  // Slots of 4 KiB: up to 49 tiles of a block, and 1 of another.
  for (const Living living : {Living::threads, Living::processes})
    play_cases(living,
               every_algorithm_of_blocks({.kind = std::nullopt, .dtype = Dtype::u8, .ranks = 3},
                                         {70'000, 200'001}),
               on_gpus + ";KHORO_SLOTS=2");
}

TEST_CASE("streams, groups and plans are ways to pass blocks of any lengths on GPUs", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  std::vector<Case> cases;
  for (const Way way : {Way::blocking, Way::grouped, Way::stream, Way::plan})
    for (const Case& what :
         every_algorithm_of_blocks({.kind = std::nullopt, .ranks = 3, .way = way}, {0, 1, 5000}))
      if (what.forced == nullptr) cases.push_back(what);
  for (const Living living : {Living::threads, Living::processes})
    play_cases(living, cases, on_gpus);
}

TEST_CASE("one rank may have everything, and who has nothing needs no memory", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "4");
  const std::string small = ";KHORO_SLOT_BYTES=4096";
  CHECK(on_ranks(Living::threads, 4, on_gpus + small + deadline, [](khoroComm_t comm, int rank) {
    for (int giver = 0; giver < 4; ++giver)
      for (int taker = 0; taker < 4; ++taker)
        for (std::size_t count : {1, 100'000}) {
          Exchange exchange(comm, rank, 4, [&](int from, int to) {
            return from == giver && to == taker ? count : std::size_t{0};
          });
          float elsewhere = 7;
          if (rank != giver) exchange.in = &elsewhere;
          if (rank != taker) exchange.out = &elsewhere;
          succeed(exchange.call(comm, nullptr), "exchange");
          expect(elsewhere == 7, "memory of the host was written");
          if (rank != taker) continue;
          exchange.memory.bring_back();
          const std::size_t given = rank == giver ? count : 0;
          for (std::size_t i = 0; i < count; ++i)
            expect(exchange.floats[given + i] == Exchange::value(giver, taker, i), "an element");
        }
    // None has anything.
    Exchange nothing(comm, rank, 4, [](int, int) { return std::size_t{0}; });
    nothing.in = nothing.out = nullptr;
    succeed(nothing.call(comm, nullptr), "nothing");
  }));
}

TEST_CASE("calls that a GPU's stream holds need the caller's counts no more", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  for (const Living living : {Living::threads, Living::processes})
    CHECK(on_ranks(living, 3, on_gpus + deadline, [](khoroComm_t comm, int rank) {
      // Longer and longer, so that what calls share grows while some are under way.
      std::vector<std::unique_ptr<Exchange>> exchanges;
      for (std::size_t k = 0; k < 30; ++k)
        exchanges.push_back(std::make_unique<Exchange>(comm, rank, 3, [&](int from, int to) {
          return k * k * std::size_t(1 + from + 2 * to) % 7919;
        }));
      // By turns on two streams; a rank that comes late has the others queue them all.
      if (rank == 2) std::this_thread::sleep_for(50ms);
      for (std::size_t k = 0; k < exchanges.size(); ++k) {
        const Exchange& exchange = *exchanges[k];
        std::vector<std::size_t> gives = exchange.gives, from = exchange.from;
        std::vector<std::size_t> gets = exchange.gets, to = exchange.to;
        succeed(khoroAlltoAllV(exchange.in, gives.data(), from.data(), exchange.out, gets.data(),
                               to.data(), khoroFloat32, comm, exchanges[k % 2]->memory.stream()),
                "queued");
        for (auto* numbers : {&gives, &from, &gets, &to})
          std::fill(numbers->begin(), numbers->end(), std::size_t{1} << 40);
      }
      for (std::size_t k : {0, 1})
        succeed(khoroStreamSynchronize(exchanges[k]->memory.stream()), "end");
      for (auto& exchange : exchanges) exchange->check(rank);
    }));
}

TEST_CASE("messages and collectives of a group go beside blocks of any lengths", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  CHECK(on_ranks(Living::threads, 3, on_gpus + deadline, [](khoroComm_t comm, int rank) {
    const auto length = [](int from, int to) { return std::size_t(3000 * from + 500 * to); };
    for (const int collectives : {1, 2}) {
      Exchange first(comm, rank, 3, length), second(comm, rank, 3, length);
      Exchange message(comm, rank, 3, [](int from, int to) {
        return to == (from + 1) % 3 ? std::size_t{2000} : std::size_t{0};
      });
      const khoroStream_t stream = first.memory.stream();
      succeed(khoroGroupStart(), "group");
      succeed(first.call(comm, stream), "exchange");
      if (collectives == 2) succeed(second.call(comm, stream), "another exchange");
      succeed(khoroSend(message.in, 2000, khoroFloat32, (rank + 1) % 3, comm, stream), "send");
      succeed(khoroRecv(message.out, 2000, khoroFloat32, (rank + 2) % 3, comm, stream), "receive");
      succeed(khoroGroupEnd(), "group");
      succeed(khoroStreamSynchronize(stream), "end");
      first.check(rank);
      if (collectives == 2) second.check(rank);
      message.check(rank);
    }
  }));
}

TEST_CASE("a block of another length at its other end is told as on hosts", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  for (const char* memory : {"KHORO_MEMORY=host", "KHORO_MEMORY=virtual"})
    for (const Living living : {Living::threads, Living::processes})
      CHECK(on_ranks(living, 3, memory + deadline, [](khoroComm_t comm, int rank) {
        const auto length = [](int from, int to) { return std::size_t(10 * from + to); };
        std::vector<std::unique_ptr<Exchange>> right;
        for (int i = 0; i < 3; ++i)
          right.push_back(std::make_unique<Exchange>(comm, rank, 3, length));
        // Rank 2 gives rank 1 less than it expects, behind calls that are right.
        Exchange odd(comm, rank, 3, length);
        if (rank == 2) --odd.gives[1];
        const khoroStream_t stream = odd.memory.stream();
        for (const auto& exchange : right) succeed(exchange->call(comm, stream), "a right call");
        const khoroResult_t result = odd.call(comm, stream);
        expect(result == khoroSuccess || result == khoroMismatch, "it was not queued");
        const std::string words = words_of_mismatch(comm);
        expect_in(words, "alltoallv #4");
        if (rank == 1) {
          expect_in(words, "khoroAlltoAllV(khoroFloat32): rank 1 expects 21 elements from rank 2");
          expect_in(words, "name the same count at both ends");
        }
      }));
}

TEST_CASE("a message of another length beside blocks is told as itself", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(on_ranks(Living::threads, 2, on_gpus + deadline, [](khoroComm_t comm, int rank) {
    Exchange exchange(comm, rank, 2, [](int, int) { return std::size_t{100}; });
    Exchange message(comm, rank, 2, [](int, int) { return std::size_t{100}; });
    const khoroStream_t stream = exchange.memory.stream();
    succeed(khoroGroupStart(), "group");
    succeed(exchange.call(comm, stream), "exchange");
    if (rank == 0)
      succeed(khoroSend(message.in, 7, khoroFloat32, 1, comm, stream), "send");
    else
      succeed(khoroRecv(message.out, 8, khoroFloat32, 0, comm, stream), "receive");
    const khoroResult_t result = khoroGroupEnd();
    expect(result == khoroSuccess || result == khoroMismatch, "it was not queued");
    const std::string words = words_of_mismatch(comm);
    expect_in(words, "khoroSend(7 x khoroFloat32, to rank 1)");
    expect_in(words, "khoroRecv(8 x khoroFloat32, from rank 0)");
  }));
}

TEST_CASE("blocks that lie beyond their memory are refused, and change nothing", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  CHECK(on_ranks(Living::threads, 2, on_gpus + deadline, [](khoroComm_t comm, int rank) {
    Exchange exchange(comm, rank, 2, [](int, int) { return std::size_t{100}; });
    const std::size_t place = exchange.to[1];
    exchange.to[1] = std::size_t{1} << 30;
    expect(exchange.call(comm, nullptr) == khoroInvalidArgument, "it was taken");
    expect_in(khoroGetLastError(nullptr), "left of its allocation");
    exchange.to[1] = place;
    succeed(exchange.call(comm, nullptr), "a right call");
    exchange.check(rank);
  }));
}
