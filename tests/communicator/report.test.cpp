// SPDX-License-Identifier: Apache-2.0
#include "communicator/report.h"

#include <memory>
#include <string>
#include <vector>

#include "support/catch.h"

using namespace khoro;

namespace {

/// Rank pages in plain memory.
struct Ranks {
  explicit Ranks(int count) {
    std::vector<Peers::Member> members;
    for (int rank = 0; rank < count; ++rank) {
      pages.push_back(std::make_unique<RankPage>(RankPage::Identity()));
      members.push_back(
          {pages.back().get(), Doorbell(pages.back()->doorbell(), -1), 100 + rank, false});
    }
    peers = std::make_unique<Peers>(0, std::move(members));
  }

  void call(int rank, std::uint64_t number, Signature signature, std::uint64_t plan = 1) {
    CallRecord record;
    record.number = number;
    record.signature = signature;
    record.plan_hash = plan;
    pages[static_cast<std::size_t>(rank)]->begin(record);
  }

  std::vector<std::unique_ptr<RankPage>> pages;
  std::unique_ptr<Peers> peers;
};

constexpr Signature sum_of(std::uint64_t count) {
  return {CallKind::allreduce, Dtype::f32, Reduction::sum, 0, count};
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("equal calls do not disagree, however many have come", "[communicator]") {
  Ranks ranks(3);
  CHECK_FALSE(compare_calls(*ranks.peers, 1));
  ranks.call(2, 1, sum_of(5));
  CHECK_FALSE(compare_calls(*ranks.peers, 1));
  ranks.call(0, 1, sum_of(5));
  ranks.call(1, 1, sum_of(5));
  CHECK_FALSE(compare_calls(*ranks.peers, 1));
}

TEST_CASE("the odd rank is named with both calls", "[communicator]") {
  Ranks ranks(4);
  for (int rank = 0; rank < 4; ++rank)
    ranks.call(rank, 1, rank == 2 ? Signature{CallKind::barrier} : sum_of(5));
  const auto found = compare_calls(*ranks.peers, 1);
  REQUIRE(found);
  CHECK(found->cause.code == Code::mismatch);
  CHECK(found->cause.culprit == 2);
  CHECK(found->cause.operation == 1);
  CHECK(says(found->message, "rank 2 called barrier, the others allreduce of 5 x f32, sum"));
}

TEST_CASE("without a majority all calls are named", "[communicator]") {
  Ranks ranks(2);
  ranks.call(0, 1, sum_of(5));
  ranks.call(1, 1, sum_of(6));
  const auto found = compare_calls(*ranks.peers, 1);
  REQUIRE(found);
  CHECK(says(found->message, "rank 0 called allreduce of 5"));
  CHECK(says(found->message, "rank 1 called allreduce of 6"));
}

TEST_CASE("equal calls with unequal plans disagree, and the plans are named", "[communicator]") {
  Ranks ranks(2);
  ranks.call(0, 1, sum_of(5), 0xabc);
  ranks.call(1, 1, sum_of(5), 0xdef);
  const auto found = compare_calls(*ranks.peers, 1);
  REQUIRE(found);
  CHECK(says(found->message, "0000000000000abc"));
  CHECK(says(found->message, "0000000000000def"));
}

TEST_CASE("a deadline names the ranks that have not come", "[communicator]") {
  Ranks ranks(4);
  ranks.call(0, 1, sum_of(5));
  ranks.call(2, 1, sum_of(5));
  CallRecord mine;
  mine.number = 1;
  mine.signature = sum_of(5);
  const Finding late = timed_out(*ranks.peers, mine, 3, 250);
  CHECK(late.cause.code == Code::timeout);
  CHECK(late.cause.culprit == 1);
  CHECK(says(late.message, "ranks 1 and 3 did not call it"));
  CHECK(says(late.message, "250 ms"));
  ranks.pages[1]->refuse(sum_of(5));
  CHECK(says(timed_out(*ranks.peers, mine, 3, 250).message, "refused"));
  ranks.call(1, 1, sum_of(5));
  ranks.call(3, 1, sum_of(5));
  CHECK(says(timed_out(*ranks.peers, mine, 3, 250).message, "rank 0 waited for rank 3 (pid 103)"));
}

TEST_CASE("words name culprit, operation, reporter and what to do", "[communicator]") {
  Ranks ranks(3);
  const std::string died = words({Code::peer_died, 2, CallKind::allreduce, 17}, 1, *ranks.peers);
  CHECK(says(died, "rank 2 (pid 102) died during allreduce #17, reported by rank 1"));
  CHECK(says(died, "restart"));
  CHECK(says(words({Code::peer_died, 2, CallKind::allreduce, 0}, -1, *ranks.peers),
             "while no operation was under way"));
  CHECK(says(words({Code::aborted, 1, CallKind::allreduce, 0}, 1, *ranks.peers),
             "rank 1 (pid 101) aborted"));
}
