// SPDX-License-Identifier: Apache-2.0
#include "communicator/cycle.h"

#include <string>

#include "communicator/report.h"
#include "support/catch.h"
#include "support/golden.h"
#include "support/rank_pages.h"

using namespace khoro;
using test::RankPages;
using test::recv_from;
using test::send_to;
using test::sum_of;

namespace {

void all_stuck(RankPages& ranks) {
  for (auto& page : ranks.pages) page->stuck(-1);
}

/// Every rank receives from the next one.
RankPages circle(int count) {
  RankPages ranks(count);
  for (int rank = 0; rank < count; ++rank) ranks.message(rank, recv_from((rank + 1) % count));
  return ranks;
}

}  // namespace

TEST_CASE("ranks that wait for each other in a circle are a cycle", "[communicator]") {
  for (int count = 2; count <= 5; ++count) {
    RankPages ranks = circle(count);
    CHECK_FALSE(find_cycle(*ranks.peers, 0));  // nobody has waited yet
    all_stuck(ranks);
    for (int rank = 0; rank < count; ++rank) {
      const Cycle cycle = find_cycle(*ranks.peers, rank);
      REQUIRE(cycle.waits.size() == static_cast<std::size_t>(count));
      CHECK(cycle.waits.front().rank == rank);
      CHECK(cycle.waits.back().peer == rank);
    }
  }
}

TEST_CASE("a cycle is believed when all its ranks have tried again", "[communicator]") {
  RankPages ranks = circle(3);
  all_stuck(ranks);
  const Cycle first = find_cycle(*ranks.peers, 0);
  CHECK_FALSE(find_cycle(*ranks.peers, 0).confirms(first));
  ranks.page(0).stuck(-1);
  ranks.page(1).stuck(-1);
  CHECK_FALSE(find_cycle(*ranks.peers, 0).confirms(first));
  ranks.page(2).stuck(-1);
  CHECK(find_cycle(*ranks.peers, 0).confirms(first));
  CHECK_FALSE(find_cycle(*ranks.peers, 0).confirms({}));
  CHECK_FALSE(Cycle().confirms({}));
}

TEST_CASE("who has made the call that is waited for is in no cycle", "[communicator]") {
  RankPages ranks = circle(3);
  all_stuck(ranks);
  // A group: the send to rank 1 is under way beside the receive, so rank 1 can go on.
  ranks.message(2, send_to(1));
  CHECK_FALSE(find_cycle(*ranks.peers, 0));
  CHECK_FALSE(find_cycle(*ranks.peers, 1));
}

TEST_CASE("a rank that waits for none of a circle is not in it", "[communicator]") {
  RankPages ranks(4);
  ranks.message(0, recv_from(1));
  for (int rank = 1; rank < 4; ++rank) ranks.message(rank, recv_from(rank % 3 + 1));
  all_stuck(ranks);
  CHECK_FALSE(find_cycle(*ranks.peers, 0));
  CHECK(find_cycle(*ranks.peers, 1).waits.size() == 3);
}

TEST_CASE("a message that waits behind another of the same pair is no wait for what that one waits",
          "[communicator]") {
  // Rank 1 receives message 1 of rank 0, slowly, and in the same group from rank 2. Rank 0 has sent
  // message 2, which has no room: it gets room without rank 2.
  RankPages ranks(3);
  ranks.page(0).finish_message(ranks.message(0, send_to(1), 1));
  ranks.message(0, send_to(1), 2);
  ranks.message(1, recv_from(0), 1);
  ranks.message(1, recv_from(2), 1);
  ranks.message(2, recv_from(0), 1);
  all_stuck(ranks);
  CHECK_FALSE(find_cycle(*ranks.peers, 0));
  CHECK_FALSE(find_cycle(*ranks.peers, 2));
}

TEST_CASE("a cycle is not believed while messages with tags move in it", "[communicator]") {
  RankPages ranks(2);
  ranks.message(0, send_to(1), 1, 7);
  ranks.message(1, recv_from(0));
  all_stuck(ranks);
  const Cycle first = find_cycle(*ranks.peers, 0);
  REQUIRE(first.waits.size() == 2);
  for (const int moving : {0, 1}) {
    const Cycle before = find_cycle(*ranks.peers, 0);
    ranks.page(moving).moved();
    all_stuck(ranks);
    CHECK_FALSE(find_cycle(*ranks.peers, 0).confirms(before));
  }
  const Cycle before = find_cycle(*ranks.peers, 0);
  all_stuck(ranks);
  CHECK(find_cycle(*ranks.peers, 0).confirms(before));
}

TEST_CASE("who receives with one tag may wait for another", "[communicator]") {
  RankPages ranks(2);
  ranks.message(0, recv_from(1), 1, 7);
  ranks.message(1, send_to(0), 1, 8);
  all_stuck(ranks);
  CHECK(find_cycle(*ranks.peers, 0));
  ranks.message(0, recv_from(1), 1, 8);  // beside it
  CHECK_FALSE(find_cycle(*ranks.peers, 1));
}

TEST_CASE("a send with a tag waits behind those with other tags, and behind no plain one",
          "[communicator]") {
  for (const std::uint32_t under_way : {8u, 0u}) {
    RankPages ranks(3);
    // Rank 0 needs rank 1 to send it tag 7. Rank 1 sends it something else, and waits for rank 2,
    // which waits for rank 0.
    ranks.message(0, recv_from(1), 1, 7);
    ranks.message(0, recv_from(1), 1, under_way);
    ranks.message(1, send_to(0), 1, under_way);
    ranks.message(1, recv_from(2));
    ranks.message(2, recv_from(0));
    all_stuck(ranks);
    CHECK(static_cast<bool>(find_cycle(*ranks.peers, 0)) == (under_way == 0));
  }
}

TEST_CASE("a message behind one that is held back is told by what its receiver says",
          "[communicator]") {
  RankPages ranks(2);
  CHECK_FALSE(find_held_back(*ranks.peers, 1));
  ranks.message(1, recv_from(0, 4), 3, 7);
  CHECK_FALSE(find_held_back(*ranks.peers, 1));
  CallRecord lacked;
  lacked.number = 2;
  lacked.signature = recv_from(0, 1'000);
  lacked.tag = 5;
  ranks.page(1).hold_back(lacked);
  const auto found = find_held_back(*ranks.peers, 1);
  REQUIRE(found);
  CHECK(found->waits.number == 3);
  CHECK(found->waits.tag == 7);
  CHECK(found->lacked.number == 2);
  CHECK(found->lacked.tag == 5);
}

TEST_CASE("a receive and a collective that wait for each other are a cycle", "[communicator]") {
  RankPages ranks(3);
  ranks.message(1, recv_from(2));
  ranks.call(0, 1, sum_of(5));
  ranks.call(2, 1, sum_of(5));
  all_stuck(ranks);
  CHECK(find_cycle(*ranks.peers, 1).waits.size() == 2);
  CHECK(find_cycle(*ranks.peers, 2).waits.size() == 2);
  CHECK_FALSE(find_cycle(*ranks.peers, 0));
  // All in the collective: a plan has no cycle.
  RankPages plain(3);
  for (int rank = 0; rank < 3; ++rank) plain.call(rank, 1, sum_of(5));
  all_stuck(plain);
  CHECK_FALSE(find_cycle(*plain.peers, 0));
}

TEST_CASE("a rank whose calls under way are not all known is in no cycle", "[communicator]") {
  RankPages ranks(2);
  ranks.message(0, recv_from(1));
  for (std::uint64_t number = 1; number <= 300; ++number) ranks.message(1, recv_from(0), number);
  all_stuck(ranks);
  CHECK_FALSE(find_cycle(*ranks.peers, 0));
  ranks.page(1).older_messages_ended();
  CHECK(find_cycle(*ranks.peers, 0));
}

TEST_CASE("what is said of calls that do not fit is as it was read and found good",
          "[communicator]") {
  std::string text;
  const auto add = [&text](const std::string& title, const std::string& message) {
    text += title + "\n  " + message + "\n\n";
  };
  {
    RankPages ranks(4);
    for (int rank = 0; rank < 4; ++rank) ranks.call(rank, 1, sum_of(rank == 2 ? 4'000 : 4'096));
    add("the count differs on rank 2", compare_calls(*ranks.peers, 1)->message);
  }
  {
    RankPages ranks(2);
    for (int rank = 0; rank < 2; ++rank) ranks.call(rank, 1, test::broadcast_of(8, rank));
    add("two ranks broadcast, each from itself", compare_calls(*ranks.peers, 1)->message);
  }
  {
    RankPages ranks(3);
    for (int rank = 0; rank < 3; ++rank)
      ranks.call(rank, 1, test::blocks_of(12, rank == 2 ? 0x1234 : 0x5678));
    add("as many elements are dealt out in another way on rank 2",
        compare_calls(*ranks.peers, 1)->message);
  }
  {
    RankPages ranks(2);
    ranks.call(0, 1, Signature{CallKind::scatter, Dtype::i32, Reduction::sum, 1, 4});
    ranks.call(1, 1, Signature{CallKind::scatterv, Dtype::i32, Reduction::sum, 1});
    add("one of two ranks names each block", compare_calls(*ranks.peers, 1)->message);
  }
  {
    RankPages ranks(4);
    ranks.call(0, 7, sum_of(5));
    ranks.call(1, 7, Signature{CallKind::barrier});
    ranks.call(2, 7, sum_of(5));
    add("a barrier on rank 1, while rank 3 has not come", compare_calls(*ranks.peers, 7)->message);
  }
  {
    RankPages ranks(2);
    ranks.call(0, 1, sum_of(5), 0xabc);
    ranks.call(1, 1, sum_of(5), 0xdef);
    add("the plans differ", compare_calls(*ranks.peers, 1)->message);
  }
  {
    RankPages ranks(2);
    ranks.message(0, send_to(1, 4), 3);
    ranks.message(1, recv_from(0, 5), 3);
    add("a message is shorter than its receiver thinks",
        compare_messages(*ranks.peers, 0, 1, 3)->message);
  }
  {
    RankPages ranks(2);
    ranks.message(0, send_to(1, 4), 3, 7);
    ranks.message(1, recv_from(0, 5), 3, 7);
    add("the same with a tag", compare_messages(*ranks.peers, 0, 1, 3, 7)->message);
  }
  {
    RankPages ranks = circle(3);
    all_stuck(ranks);
    add("all receive first", describe(find_cycle(*ranks.peers, 0)));
  }
  {
    RankPages ranks(2);
    ranks.message(0, recv_from(1));
    ranks.call(1, 1, sum_of(5));
    all_stuck(ranks);
    add("a receive across a collective", describe(find_cycle(*ranks.peers, 0)));
  }
  {
    RankPages ranks(2);
    ranks.message(0, send_to(1, 5'000'000), 4, 7);
    ranks.message(1, recv_from(0));
    all_stuck(ranks);
    add("a message with a tag finds no room", describe(find_cycle(*ranks.peers, 0)));
  }
  {
    CallRecord waits, lacked;
    waits.number = 3;
    waits.signature = recv_from(0);
    waits.tag = 7;
    lacked.number = 2;
    lacked.signature = recv_from(0, 5'000'000);
    lacked.tag = 5;
    add("a message comes behind one that finds no room", describe(HeldBack{1, waits, lacked}));
  }
  {
    RankPages ranks(2);
    ranks.message(1, send_to(0), 1, 7);
    CallRecord mine = *ranks.page(0).message(ranks.message(0, recv_from(1), 1, 8));
    add("what is sent has another tag", timed_out(*ranks.peers, mine, 1, 600'000).message);
  }
  {
    RankPages ranks(3);
    ranks.call(0, 2, sum_of(5));
    CallRecord mine = *ranks.page(0).record(2);
    add("a rank does not come", timed_out(*ranks.peers, mine, 1, 600'000).message);
    ranks.done(1, sum_of(1));
    ranks.done(2, sum_of(1));
    ranks.call(2, 2, sum_of(5));
    ranks.page(1).refuse(sum_of(5));
    add("a rank's call was refused", timed_out(*ranks.peers, mine, 1, 600'000).message);
    add("a rank died", words({Code::peer_died, 2, CallKind::allreduce, 17}, 1, *ranks.peers));
  }
  test::check_golden(test::golden_folder() / "mismatches.txt", text);
}
