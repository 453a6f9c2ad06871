// SPDX-License-Identifier: Apache-2.0
// Calls of communicators on virtual GPUs, whose results have the bits of those on hosts.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/play_cases.h"
#include "support/scoped_environment.h"

using namespace khoro;
using namespace khoro::test;

namespace {

const std::string on_gpus = "KHORO_MEMORY=virtual";

/// All that a message carries stays in the buffers of who sends it, where the other reaches them.
const std::string in_buffers = ";KHORO_DIRECT_BYTES=1";

#ifdef __SANITIZE_THREAD__
// Two lanes of a rank may be ordered by what another process does, which ThreadSanitizer does not
// see and takes for a race.
constexpr Living apart = Living::threads;
#else
constexpr Living apart = Living::processes;
#endif

/// Of none, few and uneven many, and around chunks of slots of 4 KiB.
const std::vector<std::size_t> some_counts = {0, 1, 2, 3, 15, 64, 129, 1023, 1024, 1025, 4097};

}  // namespace

TEST_CASE("any algorithm of every collective is right on GPUs, in place and not", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "4");
  for (const bool in_place : {false, true})
    for (const char* mode :
         {"KHORO_FLAGGED_BYTES=4096", "KHORO_FLAGGED_BYTES=0", "KHORO_DIRECT_BYTES=1"})
      play_cases(
          Living::threads,
          every_algorithm({.kind = std::nullopt, .ranks = 4, .in_place = in_place}, some_counts),
          on_gpus + ";" + mode);
}

TEST_CASE("messages through memory of the host are as right", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "4");
  for (const char* mode : {"KHORO_FLAGGED_BYTES=4096", "KHORO_FLAGGED_BYTES=0"})
    for (const Living living : {Living::threads, apart})
      play_cases(
          living,
          every_algorithm({.kind = std::nullopt, .ranks = 4, .in_place = true}, {1, 1025, 4097}),
          on_gpus + ";KHORO_PEER_ACCESS=off;" + mode);
}

TEST_CASE("any number of ranks is right, several on a GPU too, on part of the links", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "8");
  const ScopedEnvironment machine(
      "KHORO_TOPO_FILE", KHORO_GOLDEN_FOLDER "/topologies/synth-hybrid-cube-mesh-8xv100.xml");
  for (int ranks = 1; ranks <= 16; ++ranks)
    play_cases(ranks % 2 == 0 ? Living::threads : apart,
               every_algorithm({.kind = std::nullopt, .dtype = Dtype::bf16, .ranks = ranks},
                               {1, 37, 1300}),
               on_gpus);
  for (int ranks = 1; ranks <= 16; ++ranks)
    play_cases(
        Living::threads,
        every_algorithm(
            {.kind = std::nullopt, .dtype = Dtype::bf16, .ranks = ranks, .in_place = ranks % 4 < 2},
            {1, 37, 1300}),
        on_gpus + in_buffers);
}

TEST_CASE("ranks may have a GPU each, sixteen of them", "[gpu]") {
  for (const int ranks : {11, 16}) {
    const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", std::to_string(ranks));
    const std::vector<Case> cases =
        every_algorithm({.kind = std::nullopt, .ranks = ranks, .in_place = ranks == 16}, {1, 1500});
    play_cases(apart, cases, on_gpus);
    play_cases(Living::threads, cases, on_gpus + in_buffers);
  }
}

TEST_CASE("all types and reductions have the same bits on GPUs", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  std::vector<Case> cases;
  for (const DtypeRow& dtype : dtypes())
    for (const ReductionRow& reduction : reductions())
      for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::reducescatter})
        for (const std::size_t count : {1, 7, 1500}) {
          if (!applies(reduction.reduction, dtype.dtype)) continue;
          if (reduction.reduction == Reduction::user) continue;
          for (const Alignment& alignment : alignments)
            cases.push_back({.kind = kind,
                             .dtype = dtype.dtype,
                             .reduction = reduction.reduction,
                             .ranks = 3,
                             .count = count,
                             .alignment = alignment,
                             .seed = count});
        }
  play_cases(Living::threads, cases, on_gpus);
  play_cases(Living::threads, cases, on_gpus + in_buffers);
  for (Case& what : cases) what.exact = true;
  play_cases(Living::threads, cases, on_gpus);
}

TEST_CASE("every small count is right on GPUs", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "2");
  std::vector<Case> cases;
  for (std::size_t count = 0; count <= 4097; ++count)
    cases.push_back({.kind = CollectiveKind::allreduce,
                     .dtype = count % 2 == 0 ? Dtype::f32 : Dtype::f16,
                     .ranks = 2,
                     .count = count,
                     .seed = count});
  play_cases(Living::threads, cases, on_gpus);
}

// By hand, for it takes a quarter of an hour: test_api_gpus "[every]".
TEST_CASE("every small count of every collective is right on GPUs, in every mode", "[.][every]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  for (const char* mode :
       {"KHORO_FLAGGED_BYTES=4096", "KHORO_FLAGGED_BYTES=0", "KHORO_DIRECT_BYTES=1",
        "KHORO_GPU_STRANDS=4", "KHORO_PEER_ACCESS=off;KHORO_FLAGGED_BYTES=4096",
        "KHORO_PEER_ACCESS=off;KHORO_FLAGGED_BYTES=0"})
    for (const CollectiveKind kind : kinds_that_move_data())
      for (const bool in_place : {false, true}) {
        Case next{.kind = kind, .ranks = 3, .in_place = in_place};
        std::vector<Case> cases;
        for (; next.count <= 4097; next.seed = ++next.count) {
          next.root = static_cast<int>(next.count % 3);
          cases.push_back(next);
        }
        play_cases(Living::threads, cases, on_gpus + ";" + mode);
      }
}

TEST_CASE("streams, groups and plans are ways to call on GPUs", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  std::vector<Case> cases;
  for (const Way way : {Way::blocking, Way::grouped, Way::stream, Way::plan})
    for (const std::size_t count : {0, 1, 500, 5000}) {
      cases.push_back({.kind = std::nullopt, .ranks = 3, .count = count, .way = way});
      for (const CollectiveKind kind : kinds_that_move_data())
        cases.push_back({.kind = kind, .ranks = 3, .count = count, .way = way});
      cases.push_back({.kind = CollectiveKind::barrier, .ranks = 3, .way = way});
    }
  for (const Living living : {Living::threads, apart}) play_cases(living, cases, on_gpus);
  play_cases(Living::threads, cases, on_gpus + in_buffers);
}

TEST_CASE("strands of a call are as right, as many as tiles and fewer, in place and not", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  for (const char* strands : {"3", "32"}) {
    const std::string settings = on_gpus + ";KHORO_GPU_STRANDS=" + strands;
    for (const bool in_place : {false, true}) {
      // Of no tile, of one, and of more than there are strands.
      std::vector<Case> cases = every_algorithm(
          {.kind = std::nullopt, .ranks = 5, .in_place = in_place}, {0, 900, 20'000});
      play_cases(Living::threads, cases, settings);
      play_cases(Living::threads, cases, settings + in_buffers);
    }
    std::vector<Case> messages;
    for (const std::size_t count : {20'000, 0, 100, 9000})
      messages.push_back({.kind = std::nullopt, .ranks = 5, .count = count, .seed = count});
    play_cases(Living::threads, messages, settings);
    messages.push_back({.kind = CollectiveKind::alltoall, .ranks = 5, .count = 5000});
    play_cases(apart, messages, settings, Playing::together);
    // Where a rank knows its own blocks alone it may know of fewer tiles than others.
    const std::vector<Case> unequal =
        every_algorithm({.kind = std::nullopt, .unequal = true, .ranks = 5}, {900, 20'000});
    play_cases(apart, unequal, settings);
    play_cases(Living::threads, unequal, settings, Playing::together);
  }
}

TEST_CASE("collectives of a group follow each other in one launch, messages beside them", "[gpu]") {
  // With as many lanes as there are ranks, and with one; with blocks that are copied, and without.
  for (const int ranks : {2, 5}) {
    const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", std::to_string(ranks - 1));
    std::vector<Case> cases;
    for (const std::size_t count : {0, 1, 700, 5000})
      for (const CollectiveKind kind : kinds_that_move_data()) {
        // Integers, whose sums are the same in any order.
        cases.push_back(
            {.kind = kind, .dtype = Dtype::i64, .ranks = ranks, .count = count, .seed = count});
        if (Collective{kind, 2}.blocks() == 1) continue;
        cases.push_back(cases.back());
        cases.back().unequal = true;
      }
    cases.push_back({.kind = std::nullopt, .ranks = ranks, .count = 3000});
    cases.push_back({.kind = CollectiveKind::barrier, .ranks = ranks});
    // Those of two lanes leave channels to others in which other blocks have the same ones.
    for (const char* allreduce : {"one-shot", "double-tree", "two-way-ring"}) {
      const std::string settings = on_gpus + ";KHORO_ALGORITHM=allreduce:" + allreduce;
      for (const Living living : {Living::threads, apart})
        play_cases(living, cases, settings, Playing::together);
      play_cases(Living::threads, cases, settings + in_buffers, Playing::together);
    }
  }
}

TEST_CASE("a collective of a group finds what came of the one before it", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  // Of two lanes, whose outcome the next one takes up in one; and the other way round.
  const std::string settings = on_gpus + ";KHORO_ALGORITHM=allreduce:two-way-ring";
  CHECK(on_ranks(Living::threads, 3, settings, [](khoroComm_t comm, int rank) {
    constexpr std::size_t count = 3000;
    for (int round = 0; round < 20; ++round) {
      std::vector<std::int64_t> here(4 * count, rank + round);
      CaseMemory memory(comm);
      memory.bring(std::as_writable_bytes(std::span(here)));
      std::int64_t* const at = memory.at(here.data());
      const auto sum = [&](int from, int to) {
        succeed(khoroAllReduce(at + from * count, at + to * count, count, khoroInt64, khoroSum,
                               comm, memory.stream()),
                "sum");
      };
      succeed(khoroGroupStart(), "group");
      sum(0, 1);
      succeed(khoroBroadcast(at + count, at + 2 * count, count, khoroInt64, round % 3, comm,
                             memory.stream()),
              "broadcast");
      sum(2, 3);
      succeed(khoroGroupEnd(), "group");
      succeed(khoroStreamSynchronize(memory.stream()), "end");
      memory.bring_back();
      const std::int64_t once = 3 + 3 * round;
      for (std::size_t i = 0; i < count; ++i) {
        expect(here[2 * count + i] == once, "what was sent on is older");
        expect(here[3 * count + i] == 3 * once, "what was added is older");
      }
    }
  }));
}

TEST_CASE("a message stays in the sender's buffer where the receiver reaches it", "[gpu]") {
  // Then a send ends with its receive, and else when its message is in a slot.
  const auto is_direct = [](const std::string& gpus, const std::string& settings) {
    const ScopedEnvironment count("KHORO_VIRTUAL_GPUS", gpus);
    bool found = false;
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    CHECK(on_ranks(Living::threads, 2, on_gpus + settings, [&](khoroComm_t comm, int rank) {
      std::vector<float> here(1000, static_cast<float>(rank));
      CaseMemory memory(comm);
      memory.bring(std::as_writable_bytes(std::span(here)));
      static std::atomic<bool> sender_has_looked;
      sender_has_looked = false;
      succeed(khoroBarrier(comm, nullptr), "barrier");
      if (rank == 0) {
        succeed(khoroSend(memory.at(here.data()), 1000, khoroFloat32, 1, comm, memory.stream()),
                "send");
        khoroResult_t state = khoroInProgress;
        for (int ms = 0; state == khoroInProgress && ms < 200; ++ms) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          state = khoroStreamQuery(memory.stream());
        }
        const char waits = state == khoroInProgress;
        expect(::write(ends[1], &waits, 1) == 1, "what was found");
        sender_has_looked = true;
        succeed(khoroStreamSynchronize(memory.stream()), "end");
      } else {
        while (!sender_has_looked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        succeed(khoroRecv(memory.at(here.data()), 1000, khoroFloat32, 0, comm, nullptr), "receive");
        memory.bring_back();
        expect(here == std::vector<float>(1000, 0), "it received something else");
      }
    }));
    CHECK(::read(ends[0], &found, 1) == 1);
    for (const int end : ends) ::close(end);
    return found;
  };
  CHECK(is_direct("2", in_buffers));
  CHECK(is_direct("1", in_buffers));
  CHECK(is_direct("2", ";KHORO_DIRECT_BYTES=4000"));
  CHECK_FALSE(is_direct("2", ";KHORO_DIRECT_BYTES=4001"));
  CHECK_FALSE(is_direct("2", ";KHORO_DIRECT_BYTES=0"));
  CHECK_FALSE(is_direct("2", in_buffers + ";KHORO_PEER_ACCESS=off"));
}

TEST_CASE("messages of a group need no order among those of different peers", "[gpu]") {
  const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", "3");
  // What rank 0 receives last comes of what it sends second.
  CHECK(on_ranks(Living::threads, 3, on_gpus, [](khoroComm_t comm, int rank) {
    std::vector<float> here(4, static_cast<float>(rank));
    CaseMemory memory(comm);
    memory.bring(std::as_writable_bytes(std::span(here)));
    float* const at = memory.at(here.data());
    const auto send = [&](int offset, int to) {
      succeed(khoroSend(at + offset, 1, khoroFloat32, to, comm, memory.stream()), "send");
    };
    const auto receive = [&](int offset, int from) {
      succeed(khoroRecv(at + offset, 1, khoroFloat32, from, comm, memory.stream()), "receive");
    };
    succeed(khoroGroupStart(), "group");
    if (rank == 0) {
      send(0, 1);
      send(1, 1);
      receive(2, 2);
      send(3, 0);
      receive(3, 0);
    }
    if (rank == 1) receive(0, 0);
    if (rank == 2) receive(0, 1);
    succeed(khoroGroupEnd(), "group");
    if (rank == 1) {
      receive(1, 0);
      send(1, 2);
    }
    if (rank == 2) send(0, 0);
    // Two collectives and a message.
    succeed(khoroGroupStart(), "group");
    for (int i : {0, 1})
      succeed(khoroAllReduce(at + i, at + i, 1, khoroFloat32, khoroSum, comm, memory.stream()),
              "sum");
    send(2, (rank + 1) % 3);
    receive(3, (rank + 2) % 3);
    succeed(khoroGroupEnd(), "group");
    succeed(khoroStreamSynchronize(memory.stream()), "end");
    memory.bring_back();
    expect(here[0] == 0 && here[1] == 0 + 0 + 2, "another sum");
    if (rank == 0) expect(here[2] == 0, "what came of the second message");
  }));
}
