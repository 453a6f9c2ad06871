// SPDX-License-Identifier: Apache-2.0
// Messages and blocks of which a third is empty, each round another, thousands of times.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "support/case.h"
#include "support/catch.h"
#include "support/fleet.h"

using namespace khoro;
using namespace khoro::test;

namespace {

constexpr int ranks = 4;

/// Of what goes from a rank to another. Rank 2 never gives anything.
std::size_t size(int round, int from, int to) {
  if (from == 2 || (from + 2 * to + round) % 3 == 0) return 0;
  return static_cast<std::size_t>((7 * from + 13 * to + round) % 97 + 1);
}
std::int32_t value(int round, int from, int to) { return round * 16 + from * 4 + to; }

/// Blocks of elements that are all alike, one after the other.
struct Parts {
  void add(std::size_t count, std::int32_t element) {
    counts.push_back(count);
    places.push_back(elements.size());
    elements.insert(elements.end(), count, element);
  }
  std::vector<std::size_t> counts, places;
  std::vector<std::int32_t> elements;
};

/// What a call is to write, and the memory for it, which before the call is full of guards and has
/// one more.
class Awaited : public Parts {
 public:
  std::int32_t* memory() {
    got_.assign(elements.size() + 1, guard);
    return got_.data();
  }
  bool came() const {
    std::vector<std::int32_t> expected = elements;
    expected.push_back(guard);
    return got_ == expected;
  }
  bool is_untouched() const { return got_ == std::vector<std::int32_t>(got_.size(), guard); }

 private:
  static constexpr std::int32_t guard = -1;
  std::vector<std::int32_t> got_;
};

/// One rank's part of one round.
struct Turn {
  khoroComm_t comm;
  int rank, round;
  int root() const { return round % ranks; }

  /// What each gives to all alike: as block r what rank r gives.
  Awaited from_all() const {
    Awaited all;
    for (int r = 0; r < ranks; ++r) all.add(size(round, r, root()), value(round, r, root()));
    return all;
  }
  Parts own(const Parts& all) const {
    Parts own;
    own.add(all.counts[std::size_t(rank)], value(round, rank, root()));
    return own;
  }
  void expect_that(bool holds, const char* what) const {
    expect(holds, std::string(what) + " of round " + std::to_string(round));
  }
};

void send_messages(const Turn& turn) {
  std::vector<Parts> sent(ranks);
  std::vector<Awaited> awaited(ranks);
  succeed(khoroGroupStart(), "group start");
  for (int peer = 0; peer < ranks; ++peer) {
    Parts& out = sent[std::size_t(peer)];
    Awaited& in = awaited[std::size_t(peer)];
    out.add(size(turn.round, turn.rank, peer), value(turn.round, turn.rank, peer));
    in.add(size(turn.round, peer, turn.rank), value(turn.round, peer, turn.rank));
    succeed(khoroSend(out.elements.data(), out.counts[0], khoroInt32, peer, turn.comm, nullptr),
            "send");
    succeed(khoroRecv(in.memory(), in.counts[0], khoroInt32, peer, turn.comm, nullptr), "receive");
  }
  succeed(khoroGroupEnd(), "group end");
  for (const Awaited& in : awaited) turn.expect_that(in.came(), "a message");
}

void exchange_blocks(const Turn& turn) {
  Parts out;
  Awaited in;
  for (int peer = 0; peer < ranks; ++peer) {
    out.add(size(turn.round, turn.rank, peer), value(turn.round, turn.rank, peer));
    in.add(size(turn.round, peer, turn.rank), value(turn.round, peer, turn.rank));
  }
  succeed(khoroAlltoAllV(out.elements.data(), out.counts.data(), out.places.data(), in.memory(),
                         in.counts.data(), in.places.data(), khoroInt32, turn.comm, nullptr),
          "alltoallv");
  turn.expect_that(in.came(), "an alltoallv");
}

void gather_blocks(const Turn& turn) {
  Awaited all = turn.from_all();
  const Parts own = turn.own(all);
  succeed(khoroAllGatherV(own.elements.data(), own.counts[0], all.memory(), all.counts.data(),
                          all.places.data(), khoroInt32, turn.comm, nullptr),
          "allgatherv");
  turn.expect_that(all.came(), "an allgatherv");
  succeed(khoroGatherV(own.elements.data(), own.counts[0], all.memory(), all.counts.data(),
                       all.places.data(), khoroInt32, turn.root(), turn.comm, nullptr),
          "gatherv");
  turn.expect_that(turn.rank == turn.root() ? all.came() : all.is_untouched(), "a gatherv");
}

void scatter_blocks(const Turn& turn) {
  const Parts all = turn.from_all();
  Awaited own;
  own.add(all.counts[std::size_t(turn.rank)], value(turn.round, turn.rank, turn.root()));
  succeed(khoroScatterV(all.elements.data(), all.counts.data(), all.places.data(), own.memory(),
                        own.counts[0], khoroInt32, turn.root(), turn.comm, nullptr),
          "scatterv");
  turn.expect_that(own.came(), "a scatterv");
  Awaited sum;
  sum.add(own.counts[0], ranks * value(turn.round, turn.rank, turn.root()));
  succeed(khoroReduceScatterV(all.elements.data(), sum.memory(), all.counts.data(), khoroInt32,
                              khoroSum, turn.comm, nullptr),
          "reducescatterv");
  turn.expect_that(sum.came(), "a reducescatterv");
}

struct Rounds {
  int count = 3000;
  std::string settings;
};

void play(void (*part)(const Turn&), const Rounds& rounds = {}) {
  INFO(rounds.settings);
  for (Living living : {Living::processes, Living::threads})
    CHECK(on_ranks(living, ranks, rounds.settings, [&](khoroComm_t comm, int rank) {
      for (int round = 0; round < rounds.count; ++round) part({comm, rank, round});
    }));
}

/// Also with each algorithm of the collectives that can do blocks that differ in length.
void play_every_way(void (*part)(const Turn&), std::initializer_list<CollectiveKind> kinds) {
  play(part);
  for (CollectiveKind kind : kinds)
    for (const Algorithm* way : algorithms())
      if (way->collective == kind && !way->equal_blocks)
        play(part, {300, settings_of({.kind = kind, .forced = way}, "")});
}

}  // namespace

TEST_CASE("messages of which a changing third is empty arrive, thousands of times", "[api]") {
  play(send_messages);
}

TEST_CASE("blocks of which a changing third is empty are exchanged, thousands of times", "[api]") {
  play_every_way(exchange_blocks, {CollectiveKind::alltoall});
}

TEST_CASE(
    "blocks of which a changing third is empty are gathered and scattered, thousands of times",
    "[api]") {
  play_every_way(gather_blocks, {CollectiveKind::allgather, CollectiveKind::gather});
  play_every_way(scatter_blocks, {CollectiveKind::scatter, CollectiveKind::reducescatter});
}

TEST_CASE("whatever is empty, one call after another of another kind is right", "[api]") {
  play(
      [](const Turn& turn) {
        exchange_blocks(turn);
        send_messages(turn);
        gather_blocks(turn);
        scatter_blocks(turn);
      },
      {300, ""});
}
