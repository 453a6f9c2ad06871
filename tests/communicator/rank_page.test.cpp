// SPDX-License-Identifier: Apache-2.0
#include "communicator/rank_page.h"

#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "support/catch.h"

using namespace khoro;

namespace {

CallRecord call(std::uint64_t number, std::uint64_t count) {
  CallRecord record;
  record.number = number;
  record.signature = {CallKind::broadcast, Dtype::bf16, Reduction::sum, 3, count};
  record.plan_hash = 77;
  record.thread = 5;
  return record;
}

}  // namespace

TEST_CASE("a recorded call reads back as it was written", "[communicator]") {
  RankPage page({});
  CHECK(page.calls() == 0);
  CHECK_FALSE(page.record(1));
  page.begin(call(1, 9));
  REQUIRE(page.record(1));
  CHECK(page.calls() == 1);
  CHECK(page.record(1)->signature == call(1, 9).signature);
  CHECK(page.record(1)->plan_hash == 77);
  CHECK(page.record(1)->thread == 5);
  CHECK(page.record(1)->state == CallState::under_way);
  page.finish(1);
  CHECK(page.record(1)->state == CallState::finished);
  CHECK_FALSE(page.record(0));
  CHECK_FALSE(page.record(2));
}

TEST_CASE("only the last 256 calls are kept", "[communicator]") {
  RankPage page({});
  for (std::uint64_t number = 1; number <= 300; ++number) page.begin(call(number, number));
  CHECK_FALSE(page.record(44));
  REQUIRE(page.record(45));
  CHECK(page.record(45)->signature.count == 45);
  CHECK(page.record(300)->signature.count == 300);
}

TEST_CASE("the chain of calls tells order and arguments apart", "[communicator]") {
  RankPage a({}), b({}), c({});
  a.begin(call(1, 5));
  a.begin(call(2, 6));
  b.begin(call(1, 6));
  b.begin(call(2, 5));
  c.begin(call(1, 5));
  CHECK(a.history()->chain != b.history()->chain);
  c.begin(call(2, 6));
  CHECK(a.history()->chain == c.history()->chain);
}

TEST_CASE("a refused call is seen with how many had begun before it", "[communicator]") {
  RankPage page({});
  CHECK_FALSE(page.refused());
  page.refuse(call(0, 9).signature);
  REQUIRE(page.refused());
  CHECK(page.refused()->number == 0);
  CHECK(page.refused()->state == CallState::refused);
  page.begin(call(1, 9));
  page.refuse(call(0, 10).signature);
  CHECK(page.refused()->number == 1);
  CHECK(page.refused()->signature.count == 10);
}

TEST_CASE("sends and receives have a ring of their own", "[communicator]") {
  RankPage page({});
  CHECK(page.messages() == 0);
  CHECK_FALSE(page.message(1));
  CallRecord sent = call(7, 9);
  sent.signature.kind = CallKind::send;
  for (std::uint64_t place = 1; place <= 300; ++place) CHECK(page.begin_message(sent) == place);
  CHECK(page.calls() == 0);
  CHECK(page.messages() == 300);
  CHECK_FALSE(page.message(44));
  REQUIRE(page.message(45));
  CHECK(page.message(45)->number == 7);
  CHECK(page.message(45)->signature == sent.signature);
  CHECK(page.message(45)->state == CallState::under_way);
  page.finish_message(45);
  CHECK(page.message(45)->state == CallState::finished);
  CHECK(page.messages_open_from() == 0);
  page.older_messages_ended();
  CHECK(page.messages_open_from() == 300);
}

TEST_CASE("what is under way is read at once, as far as its records are there", "[communicator]") {
  RankPage page({});
  CHECK(page.under_way().calls.empty());
  CHECK(page.under_way().complete);
  CallRecord sent = call(1, 9);
  sent.signature.kind = CallKind::send;
  page.begin_message(sent);
  page.begin(call(1, 9));
  REQUIRE(page.under_way().calls.size() == 2);
  CHECK(page.under_way().calls.front().signature.kind == CallKind::send);
  page.finish(1);
  page.finish_message(1);
  CHECK(page.under_way().calls.empty());
  CHECK(page.under_way().complete);
  for (sent.number = 2; sent.number <= 257; ++sent.number) page.begin_message(sent);
  CHECK(page.under_way().calls.size() == 256);
  CHECK_FALSE(page.under_way().complete);
  page.older_messages_ended();
  CHECK(page.under_way().calls.size() == 1);
  CHECK(page.under_way().complete);
}

TEST_CASE("of queued collectives the oldest is under way", "[communicator]") {
  RankPage page({});
  for (std::uint64_t number = 1; number <= 100; ++number) page.begin(call(number, number));
  for (std::uint64_t number = 1; number <= 39; ++number) page.finish(number);
  page.begin(call(101, 0));
  page.finish(101);  // an empty one ends at once
  REQUIRE(page.under_way().calls.size() == 1);
  CHECK(page.under_way().calls.front().number == 40);
  for (std::uint64_t number = 40; number <= 100; ++number) page.finish(number);
  CHECK(page.under_way().calls.empty());
  CHECK(page.under_way().complete);
  page.begin(call(102, 0));
  REQUIRE(page.under_way().calls.size() == 1);
  CHECK(page.under_way().calls.front().number == 102);
}

TEST_CASE("how often a rank was stuck, and for whom, reads back", "[communicator]") {
  RankPage page({});
  CHECK(page.stuck_times(4).times == 0);
  page.stuck(-1);
  CHECK(page.stuck_times(4).times == 1);
  CHECK(page.stuck_times(4).peer == -1);
  page.stuck(3);
  CHECK(page.stuck_times(4).times == 2);
  CHECK(page.stuck_times(4).peer == 3);
  CHECK(page.stuck_times(3).peer == -1);
  CHECK(page.stuck_times(4).moves == 0);
  page.moved();
  CHECK(page.stuck_times(4).times == 2);
  CHECK(page.stuck_times(4).moves == 1);
  CHECK(page.stuck_times(4).peer == 3);
  // Some other number than a moment ago, however often it was said, and never none.
  std::uint32_t before = page.stuck_times(4).times;
  for (int i = 0; i < 70'000; ++i) {
    page.moved();
    page.stuck(-1);
    const auto now = page.stuck_times(4);
    REQUIRE(now.times != 0);
    REQUIRE(now.times != std::exchange(before, now.times));
    REQUIRE(now.moves == static_cast<std::uint32_t>(i + 2) % 65'536);
  }
}

TEST_CASE("the tag of a message stays with its record until it is overwritten", "[communicator]") {
  RankPage page({});
  for (const std::uint32_t tag : {0u, 1u, 7u, 0xffffffffu}) {
    CallRecord sent = call(3, 9);
    sent.signature.kind = CallKind::send;
    sent.tag = tag;
    const std::uint64_t place = page.begin_message(sent);
    REQUIRE(page.message(place));
    CHECK(page.message(place)->tag == tag);
    CHECK(page.message(place)->state == CallState::under_way);
    page.finish_message(place, tag);
    CHECK(page.message(place)->tag == tag);
    CHECK(page.message(place)->state == CallState::finished);
    page.refuse(sent.signature, tag);
    CHECK(page.refused()->tag == tag);
    page.hold_back(sent);
    REQUIRE(page.held_back());
    CHECK(page.held_back()->tag == tag);
    CHECK(page.held_back()->number == 3);
    CHECK(page.held_back()->signature == sent.signature);
  }
}

TEST_CASE("a chain is read with the number of calls that it is of", "[communicator]") {
  RankPage page({});
  std::uint64_t chain = 0;
  for (std::uint64_t number = 1; number <= 600; ++number) {
    page.begin(call(number, number));
    chain = chained(chain, call(number, number).signature);
    REQUIRE(page.history());
    CHECK(page.history()->calls == number);
    CHECK(page.history()->chain == chain);
  }
}

TEST_CASE("a notice reads back, with and without a culprit", "[communicator]") {
  for (int culprit = -1; culprit < 4; ++culprit) {
    RankPage page({});
    CHECK_FALSE(page.posted());
    CHECK_FALSE(page.notice(4));
    page.post({Code::peer_died, culprit, CallKind::recv, 1'000'000'007, 0xffffffff});
    REQUIRE(page.notice(4));
    CHECK(page.posted());
    CHECK(page.notice(4)->code == Code::peer_died);
    CHECK(page.notice(4)->culprit == culprit);
    CHECK(page.notice(4)->kind == CallKind::recv);
    CHECK(page.notice(4)->operation == 1'000'000'007);
    CHECK(page.notice(4)->tag == 0xffffffff);
  }
}

TEST_CASE("whatever a peer writes, what is read is a legal value", "[communicator]") {
  std::mt19937_64 random(5);
  const auto page = std::make_unique<RankPage>(RankPage::Identity());
  for (int round = 0; round < 2'000; ++round) {
    std::uint64_t words[sizeof(RankPage) / 8];
    for (std::uint64_t& word : words) word = random() >> (random() % 64);
    std::memcpy(static_cast<void*>(page.get()), words, sizeof words);
    if (const auto notice = page->notice(4)) {
      CHECK(static_cast<int>(notice->code) > 0);
      CHECK(static_cast<int>(notice->code) <= static_cast<int>(Code::out_of_memory));
      CHECK(notice->culprit >= -1);
      CHECK(notice->culprit < 4);
      CHECK(static_cast<int>(notice->kind) < call_kinds);
    }
    for (std::uint64_t number : {words[40], words[48], std::uint64_t{1}, page->calls()})
      if (const auto record = page->record(number)) {
        CHECK(static_cast<int>(record->signature.kind) < call_kinds);
        CHECK_FALSE(describe(record->signature).empty());
      }
    for (std::uint64_t place : {words[46], page->messages(), std::uint64_t{1}})
      if (const auto message = page->message(place))
        CHECK_FALSE(describe(message->signature).empty());
    CHECK(page->stuck_times(4).peer < 4);
    static_cast<void>(page->history());
    if (const auto refused = page->refused()) CHECK_FALSE(describe(refused->signature).empty());
    if (const auto message = page->held_back()) CHECK_FALSE(describe(message->signature).empty());
  }
}
