// SPDX-License-Identifier: Apache-2.0
#include "communicator/report.h"

#include <string>

#include "support/catch.h"
#include "support/rank_pages.h"

using namespace khoro;
using Catch::Contains;
using test::RankPages;
using test::sum_of;

TEST_CASE("equal calls do not disagree, however many have come", "[communicator]") {
  RankPages ranks(3);
  CHECK_FALSE(compare_calls(*ranks.peers, 1));
  ranks.call(2, 1, sum_of(5));
  CHECK_FALSE(compare_calls(*ranks.peers, 1));
  ranks.call(0, 1, sum_of(5));
  ranks.call(1, 1, sum_of(5));
  CHECK_FALSE(compare_calls(*ranks.peers, 1));
}

TEST_CASE("the odd rank is named with both calls", "[communicator]") {
  RankPages ranks(4);
  for (int rank = 0; rank < 4; ++rank)
    ranks.call(rank, 1, rank == 2 ? Signature{CallKind::barrier} : sum_of(5));
  const auto found = compare_calls(*ranks.peers, 1);
  REQUIRE(found);
  CHECK(found->cause.code == Code::mismatch);
  CHECK(found->cause.culprit == 2);
  CHECK(found->cause.operation == 1);
  CHECK_THAT(
      found->message,
      Contains("rank 2 called khoroBarrier(), the others called khoroAllReduce(5 x khoroFloat32, "
               "khoroSum)"));
}

TEST_CASE("without a majority all calls are named", "[communicator]") {
  RankPages ranks(2);
  ranks.call(0, 1, sum_of(5));
  ranks.call(1, 1, sum_of(6));
  const auto found = compare_calls(*ranks.peers, 1);
  REQUIRE(found);
  CHECK_THAT(found->message, Contains("rank 0 called khoroAllReduce(5 x"));
  CHECK_THAT(found->message, Contains("rank 1 called khoroAllReduce(6 x"));
}

TEST_CASE("equal calls with unequal plans disagree, and the plans are named", "[communicator]") {
  RankPages ranks(2);
  ranks.call(0, 1, sum_of(5), 0xabc);
  ranks.call(1, 1, sum_of(5), 0xdef);
  const auto found = compare_calls(*ranks.peers, 1);
  REQUIRE(found);
  CHECK_THAT(found->message, Contains("0000000000000abc"));
  CHECK_THAT(found->message, Contains("0000000000000def"));
}

TEST_CASE("a deadline names the ranks that have not come", "[communicator]") {
  RankPages ranks(4);
  ranks.call(0, 1, sum_of(5));
  ranks.call(2, 1, sum_of(5));
  CallRecord mine;
  mine.number = 1;
  mine.signature = sum_of(5);
  const Finding late = timed_out(*ranks.peers, mine, 3, 250);
  CHECK(late.cause.code == Code::timeout);
  CHECK(late.cause.culprit == 1);
  CHECK_THAT(late.message, Contains("ranks 1 and 3 did not call it"));
  CHECK_THAT(late.message, Contains("250 ms"));
  ranks.pages[1]->refuse(sum_of(5));
  CHECK_THAT(timed_out(*ranks.peers, mine, 3, 250).message, Contains("refused"));
  ranks.call(1, 1, sum_of(5));
  ranks.call(3, 1, sum_of(5));
  CHECK_THAT(timed_out(*ranks.peers, mine, 3, 250).message,
             Contains("rank 0 waited for rank 3 (pid 103)"));
}

TEST_CASE("words name culprit, operation, reporter and what to do", "[communicator]") {
  RankPages ranks(3);
  const std::string died = words({Code::peer_died, 2, CallKind::allreduce, 17}, 1, *ranks.peers);
  CHECK_THAT(died, Contains("rank 2 (pid 102) died during allreduce #17, reported by rank 1"));
  CHECK_THAT(died, Contains("restart"));
  CHECK_THAT(words({Code::peer_died, 2, CallKind::allreduce, 0}, -1, *ranks.peers),
             Contains("while no operation was under way"));
  CHECK_THAT(words({Code::peer_died, 2, CallKind::send, 3, 7}, -1, *ranks.peers),
             Contains("died during send #3 with tag 7;"));
  CHECK_THAT(words({Code::aborted, 1, CallKind::allreduce, 0}, 1, *ranks.peers),
             Contains("rank 1 (pid 101) aborted"));
}

TEST_CASE("calls that nobody waited in are compared by their chains", "[communicator]") {
  RankPages ranks(3);
  for (int call = 0; call < 1'000; ++call)
    for (int rank = 0; rank < 3; ++rank) ranks.done(rank, sum_of(0));
  CHECK_FALSE(compare_histories(*ranks.peers));
  // One of them may be ahead.
  for (int call = 0; call < 255; ++call) ranks.done(0, sum_of(0));
  CHECK_FALSE(compare_histories(*ranks.peers));
  ranks.done(1, test::broadcast_of(0, 2));
  const auto found = compare_histories(*ranks.peers);
  REQUIRE(found);
  CHECK(found->cause.code == Code::mismatch);
  CHECK(found->cause.operation == 1'001);
  CHECK_THAT(found->message, Contains("rank 0 called khoroAllReduce(0 x khoroFloat32, khoroSum)"));
  CHECK_THAT(found->message, Contains("rank 1 called khoroBroadcast(0 x khoroFloat32, root 2)"));
}

TEST_CASE("a difference is seen after its records have been overwritten", "[communicator]") {
  RankPages ranks(2);
  ranks.done(0, sum_of(0));
  ranks.done(1, Signature{CallKind::allgather});
  for (int call = 0; call < 300; ++call)
    for (int rank = 0; rank < 2; ++rank) ranks.done(rank, sum_of(0));
  const auto found = compare_histories(*ranks.peers);
  REQUIRE(found);
  CHECK_THAT(found->message,
             Contains("ranks 0 and 1 did not make the same calls before collective #301"));
}

TEST_CASE("ranks too far apart to be compared are not said to differ", "[communicator]") {
  RankPages ranks(2);
  for (int call = 0; call < 1'000; ++call) ranks.done(0, sum_of(0));
  CHECK_FALSE(compare_histories(*ranks.peers));
  for (int call = 0; call < 1'000; ++call) ranks.done(1, sum_of(0));
  CHECK_FALSE(compare_histories(*ranks.peers));
}

TEST_CASE("the ends of a message are compared by rank and number", "[communicator]") {
  RankPages ranks(3);
  for (std::uint64_t number = 1; number < 5; ++number) {
    ranks.message(1, test::send_to(2, number), number);
    ranks.message(1, test::send_to(0, 9), number);
    ranks.message(2, test::recv_from(1, number == 4 ? 5 : number), number);
  }
  CHECK_FALSE(compare_messages(*ranks.peers, 1, 2, 3));
  CHECK_FALSE(compare_messages(*ranks.peers, 1, -1, 3));
  for (const int receiver : {2, -1}) {
    const auto found = compare_messages(*ranks.peers, 1, receiver, 4);
    REQUIRE(found);
    CHECK_THAT(found->message, Contains("rank 1 called khoroSend(4 x khoroInt32, to rank 2)"));
    CHECK_THAT(found->message, Contains("rank 2 called khoroRecv(5 x khoroInt32, from rank 1)"));
  }
}

TEST_CASE("messages with one tag meet by their numbers, apart from those with another",
          "[communicator]") {
  RankPages ranks(2);
  ranks.message(0, test::send_to(1, 4), 1, 7);
  ranks.message(0, test::send_to(1, 5), 1, 8);
  ranks.message(0, test::send_to(1, 6), 1);
  ranks.message(1, test::recv_from(0, 5), 1, 8);
  ranks.message(1, test::recv_from(0, 9), 1, 7);
  CHECK_FALSE(compare_messages(*ranks.peers, 0, 1, 1, 8));
  CHECK_FALSE(compare_messages(*ranks.peers, 0, 1, 1));
  CHECK_FALSE(compare_messages(*ranks.peers, 0, 1, 2, 7));
  const auto found = compare_messages(*ranks.peers, 0, -1, 1, 7);
  REQUIRE(found);
  CHECK(found->cause.tag == 7);
  CHECK_THAT(found->message,
             Contains("message #1 with tag 7 from rank 0 to rank 1") &&
                 Contains("rank 0 called khoroSendTag(4 x khoroInt32, to rank 1, tag 7)") &&
                 Contains("rank 1 called khoroRecvTag(9 x khoroInt32, from rank 0, tag 7)"));
}

TEST_CASE("a message with a tag lacks its other end until that is under way", "[communicator]") {
  RankPages ranks(2);
  CallRecord waits;
  waits.signature = test::recv_from(1);
  waits.number = 5;  // as this end counts
  waits.tag = 7;
  CHECK(lacks(ranks.page(1), 0, waits));
  ranks.message(1, test::send_to(0), 5);
  ranks.message(1, test::send_to(0), 5, 8);
  CHECK(lacks(ranks.page(1), 0, waits));
  const std::uint64_t place = ranks.message(1, test::send_to(0), 1, 7);
  CHECK_FALSE(lacks(ranks.page(1), 0, waits));
  ranks.page(1).finish_message(place, 7);
  CHECK(lacks(ranks.page(1), 0, waits));
}

TEST_CASE("a refused call is reported to who waits for it, until another was made",
          "[communicator]") {
  RankPages ranks(2);
  CallRecord mine;
  mine.number = 1;
  mine.signature = sum_of(5);
  CHECK_FALSE(refused_instead(ranks.page(1), 0, mine));
  ranks.page(1).refuse(sum_of(5));
  CHECK(refused_instead(ranks.page(1), 0, mine));
  ranks.done(1, sum_of(5));
  CHECK_FALSE(refused_instead(ranks.page(1), 0, mine));
  mine.signature = test::recv_from(1);
  ranks.page(1).refuse(test::send_to(0));
  CHECK(refused_instead(ranks.page(1), 0, mine));
  mine.signature = test::send_to(1);
  CHECK_FALSE(refused_instead(ranks.page(1), 0, mine));
  mine.signature = test::recv_from(1);
  ranks.page(1).refuse(test::send_to(0), 7);
  CHECK_FALSE(refused_instead(ranks.page(1), 0, mine));
  mine.tag = 7;
  CHECK(refused_instead(ranks.page(1), 0, mine));
  ranks.message(1, test::send_to(0));
  CHECK_FALSE(refused_instead(ranks.page(1), 0, mine));
}
