// SPDX-License-Identifier: Apache-2.0
#include "communicator/flight_report.h"

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/rank_pages.h"

using namespace khoro;
using test::RankPages;

namespace {

/// Ranks as they are seen from outside.
struct Ranks : RankPages {
  explicit Ranks(int count) : RankPages(count) {
    for (int rank = 0; rank < count; ++rank) {
      Sighting& sighting = seen.emplace_back();
      sighting.rank = rank;
      sighting.pid = 100 + rank;
      sighting.page = pages.at(static_cast<std::size_t>(rank)).get();
    }
  }

  /// All ranks from `first` to `last` begin call `number`.
  void call(int first, int last, std::uint64_t number, std::uint64_t count = 4) {
    for (int rank = first; rank <= last; ++rank) RankPages::call(rank, number, test::sum_of(count));
  }
  /// A rank begins its message `number` to or from a peer.
  std::uint64_t message(int rank, CallKind kind, int peer, std::uint64_t number = 1,
                        std::uint64_t count = 4) {
    CallRecord record;
    record.number = number;
    record.signature = {kind, Dtype::i32, Reduction::sum, peer, count};
    return page(rank).begin_message(record);
  }
  void finish(int first, int last, std::uint64_t number) {
    for (int rank = first; rank <= last; ++rank) page(rank).finish(number);
  }
  Sighting& sighting(int rank) { return seen.at(static_cast<std::size_t>(rank)); }

  std::vector<RankGroup> groups(const std::optional<Cause>& cause = {}) const {
    return group(account_for(seen, cause));
  }

  std::vector<Sighting> seen;
};

}  // namespace

TEST_CASE("64 ranks that say the same are one line", "[communicator]") {
  Ranks ranks(64);
  ranks.call(0, 63, 1);
  ranks.finish(0, 63, 1);
  ranks.call(0, 63, 2);
  const auto groups = ranks.groups();
  REQUIRE(groups.size() == 1);
  CHECK(headline(groups) == "ranks 0-63 are in a call");
  CHECK(lines_of(groups) ==
        std::vector<std::string>{"ranks 0-63: in a call; last finished: #1 "
                                 "khoroAllReduce(4 x khoroFloat32, khoroSum); not finished: #2 "
                                 "khoroAllReduce(4 x khoroFloat32, khoroSum)"});
}

TEST_CASE("of many queued calls the one that all wait for is told", "[communicator]") {
  Ranks ranks(2);
  for (std::uint64_t number = 1; number <= 20; ++number) ranks.call(0, 0, number);
  for (std::uint64_t number = 1; number <= 7; ++number) ranks.call(1, 1, number);
  for (std::uint64_t number = 1; number <= 6; ++number) ranks.finish(0, 1, number);
  ranks.finish(1, 1, 7);
  const auto lines = lines_of(ranks.groups());
  const std::string call = " khoroAllReduce(4 x khoroFloat32, khoroSum)";
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("; last finished: #6" + call + "; not finished: #7" + call) !=
        std::string::npos);
  CHECK(lines[1].find("; last finished: #7" + call + "; not finished: nothing") !=
        std::string::npos);
}

TEST_CASE("a rank whose process has ended is dead, unless it had left or given up",
          "[communicator]") {
  Ranks ranks(4);
  ranks.call(0, 3, 1);
  for (int rank = 0; rank < 3; ++rank) ranks.sighting(rank).process = ProcessState::ended;
  ranks.sighting(0).end = "ended by signal 9";
  ranks.page(1).close();
  ranks.page(2).post({Code::peer_died, 0, CallKind::allreduce, 1});
  const auto groups = ranks.groups();
  CHECK(headline(groups) == "rank 0 is dead");
  const auto lines = lines_of(groups);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] ==
        "rank 0 (process 100): dead, ended by signal 9; last finished: nothing; not finished: #1 "
        "khoroAllReduce(4 x khoroFloat32, khoroSum)");
  CHECK(lines[1].find("rank 1 (process 101): has left;") == 0);
  CHECK(lines[2].find("ranks 2-3: in a call;") == 0);
}

TEST_CASE("dead is worse than stopped, stopped than odd, odd than not called", "[communicator]") {
  Ranks ranks(6);
  ranks.call(0, 4, 1);
  ranks.finish(0, 4, 1);
  ranks.call(0, 3, 2);
  CHECK(headline(ranks.groups()) == "ranks 4-5 have not called #2");
  ranks.call(4, 4, 2, 5);
  CHECK(headline(ranks.groups()) == "rank 4 made another call than most");
  ranks.sighting(3).process = ProcessState::stopped;
  CHECK(headline(ranks.groups()) == "rank 3 is stopped");
  ranks.sighting(2).process = ProcessState::ended;
  CHECK(headline(ranks.groups()) == "rank 2 is dead");
}

TEST_CASE("where no two calls agree all differ", "[communicator]") {
  Ranks ranks(2);
  ranks.call(0, 0, 1, 4);
  ranks.call(1, 1, 1, 5);
  CHECK(headline(ranks.groups()) == "ranks 0-1 made calls that differ");
}

TEST_CASE("calls that differed are found by the cause when ranks have gone on", "[communicator]") {
  Ranks ranks(3);
  ranks.call(0, 1, 1);
  ranks.call(2, 2, 1, 9);
  ranks.finish(0, 2, 1);
  ranks.call(0, 2, 2);
  CHECK(headline(ranks.groups()) == "ranks 0-2 are in a call");
  CHECK(headline(ranks.groups(Cause{Code::mismatch, 2, CallKind::allreduce, 1})) ==
        "rank 2 made another call than most");
}

TEST_CASE("a rank that waits in an earlier call is not called missing", "[communicator]") {
  Ranks ranks(2);
  ranks.call(0, 1, 1);
  ranks.finish(0, 0, 1);
  ranks.call(0, 0, 2);
  CHECK(headline(ranks.groups()) == "ranks 0-1 are in a call");
}

TEST_CASE("a rank whose call was refused is missing, with what it asked", "[communicator]") {
  Ranks ranks(2);
  ranks.call(0, 0, 1);
  ranks.page(1).refuse({CallKind::barrier});
  CHECK(headline(ranks.groups()) ==
        "rank 1 has not called #1; its khoroBarrier() was refused for its arguments");
}

TEST_CASE("the rank that aborted or revoked is named", "[communicator]") {
  Ranks ranks(3);
  ranks.call(0, 1, 1);
  CHECK(headline(ranks.groups(Cause{Code::aborted, 2, CallKind::allreduce, 0})) ==
        "rank 2 aborted the communicator");
  CHECK(headline(ranks.groups(Cause{Code::revoked, 0, CallKind::allreduce, 1})) ==
        "rank 0 revoked the communicator");
}

TEST_CASE("ranks of one process are named with it", "[communicator]") {
  Ranks ranks(2);
  ranks.sighting(1).pid = ranks.sighting(0).pid;
  CHECK(
      lines_of(ranks.groups()) ==
      std::vector<std::string>{
          "ranks 0-1 (process 100): between calls; last finished: nothing; not finished: nothing"});
}

TEST_CASE("who waits in a receive is in a call, and its sender has not called", "[communicator]") {
  Ranks ranks(3);
  ranks.call(0, 2, 1);
  ranks.finish(0, 2, 1);
  ranks.page(0).finish_message(ranks.message(0, CallKind::recv, 1, 1));
  ranks.page(1).finish_message(ranks.message(1, CallKind::send, 0, 1));
  ranks.message(0, CallKind::recv, 1, 2);
  const auto groups = ranks.groups();
  CHECK(headline(groups) == "rank 1 has not called send #2 to rank 0");
  const auto lines = lines_of(groups);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] ==
        "rank 1 (process 101): has not called send #2 to rank 0; last finished: #1 "
        "khoroAllReduce(4 x khoroFloat32, khoroSum), #1 khoroSend(4 x khoroInt32, to rank 0); "
        "not finished: nothing");
  CHECK(lines[1].find("rank 0 (process 100): in a call; ") == 0);
  CHECK(lines[1].find("not finished: #2 khoroRecv(4 x khoroInt32, from rank 1)") != lines[1].npos);
  CHECK(lines[2].find("rank 2 (process 102): between calls; ") == 0);
}

TEST_CASE("a sender whose call was refused is missing, with what it asked", "[communicator]") {
  Ranks ranks(2);
  ranks.message(0, CallKind::recv, 1);
  ranks.page(1).refuse({CallKind::send, Dtype::i32, Reduction::sum, 0, 7});
  CHECK(headline(ranks.groups()) ==
        "rank 1 has not called send #1 to rank 0; its khoroSend(7 x khoroInt32, to rank 0) was "
        "refused for its arguments");
}

TEST_CASE("of many sends and receives under way the first are shown", "[communicator]") {
  Ranks ranks(2);
  for (std::uint64_t number = 1; number <= 300; ++number)
    ranks.message(0, CallKind::recv, 1, number);
  const auto accounts = account_for(ranks.seen, {});
  CHECK(accounts[0].verdict == RankVerdict::in_call);
  CHECK(accounts[0].under_way ==
        "#45 khoroRecv(4 x khoroInt32, from rank 1), #46 khoroRecv(4 x khoroInt32, from rank 1), "
        "#47 khoroRecv(4 x khoroInt32, from rank 1) and 253 more");
}

TEST_CASE("ranks that receive from each other are a cycle once one of them has said so",
          "[communicator]") {
  Ranks ranks(3);
  for (int rank = 0; rank < 2; ++rank) {
    ranks.message(rank, CallKind::recv, 1 - rank);
    ranks.page(rank).stuck(-1);
  }
  CHECK(headline(ranks.groups()) == "ranks 0-1 are in a call");
  const auto groups = ranks.groups(Cause{Code::mismatch, 1, CallKind::recv, 1});
  CHECK(headline(groups) == "ranks 0-1 wait for each other in a cycle");
  CHECK(lines_of(groups)[0] ==
        "rank 0 (process 100): in a cycle, waits for rank 1; last finished: nothing; not finished: "
        "#1 "
        "khoroRecv(4 x khoroInt32, from rank 1)");
}

TEST_CASE("both ends of a message that differ are named", "[communicator]") {
  Ranks ranks(3);
  ranks.message(1, CallKind::send, 2, 1, 4);
  ranks.message(2, CallKind::recv, 1, 1, 5);
  CHECK(headline(ranks.groups(Cause{Code::mismatch, 1, CallKind::recv, 1})) ==
        "ranks 1-2 made calls that differ");
}

TEST_CASE("ranks that have not shown themselves are not blamed", "[communicator]") {
  Ranks ranks(4);
  ranks.call(1, 1, 1);
  ranks.call(3, 3, 1, 5);
  ranks.seen.erase(ranks.seen.begin() + 2);
  ranks.seen.erase(ranks.seen.begin());
  const auto groups = ranks.groups(Cause{Code::mismatch, 3, CallKind::allreduce, 1});
  CHECK(headline(groups) == "ranks 1, 3 made calls that differ");
  CHECK(groups.size() == 2);
}
