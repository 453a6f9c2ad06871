// SPDX-License-Identifier: Apache-2.0
// Both ends of the messages with tags from one rank to another, in one thread.
#include "communicator/mailbox.h"

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "communicator/plan_table.h"
#include "support/catch.h"
#include "support/memory_channel.h"

using namespace khoro;

namespace {

constexpr std::uint64_t cost = Inbox::bookkeeping;

/// Rank 0 sends, rank 1 receives.
class Post {
 public:
  explicit Post(std::uint64_t limit)
      : network_({.slots = 2, .slot_bytes = 4096}),
        inbox(channel(receiver_, 0, false), limit, kept),
        outbox(channel(sender_, 1, true)) {}

  /// Sends `text` as far as it goes; true if the end came.
  bool send(std::uint32_t tag, const std::string& text) {
    outbox.start({++number_, text.size(), tag, Dtype::u8, {}},
                 reinterpret_cast<const std::byte*>(text.data()));
    return go_on();
  }
  bool go_on() {
    for (;;) {
      const Progress sent = outbox.advance();
      if (sent == Progress::done) return true;
      const Progress taken = inbox.pump();
      if (sent == Progress::waiting && taken != Progress::moved) return false;
    }
  }
  void take_in() {
    while (inbox.pump() == Progress::moved) {
    }
  }

  /// Announces what no correct rank does, or does not mean.
  Progress announce(const Announcement& announcement) {
    TagChannel raw = channel(sender_, 1, true);
    raw.announce({reinterpret_cast<const std::byte*>(&announcement), nullptr});
    while (raw.announcements->advance() != Progress::done) {
    }
    for (;;) {
      const Progress progress = inbox.pump();
      if (progress != Progress::moved) return progress;
    }
  }

  struct Received {
    std::string text;
    Receipt receipt;
  };
  Received& receive(std::uint32_t tag, std::size_t length) {
    Received& received = received_.emplace_back();
    received.text.assign(length, '?');
    received.receipt = {
        {7, length, tag, Dtype::u8, {}}, reinterpret_cast<std::byte*>(received.text.data()), false};
    inbox.post(received.receipt);
    return received;
  }

 private:
  /// One end of the channel from rank 0 to rank 1.
  static TagChannel channel(PlanTable& of, int peer, bool sends) {
    return {of.make_port(peer, sends, tagged_messages), of.make_port(peer, sends, tagged_messages),
            99};
  }

  test::MemoryNetwork network_;
  test::MemoryEnds sending_{network_, 0}, receiving_{network_, 1};
  PlanTable sender_{0, 2, Settings(), sending_}, receiver_{1, 2, Settings(), receiving_};
  std::deque<Received> received_;
  std::uint64_t number_ = 0;

 public:
  std::atomic<std::uint64_t> kept{0};
  Inbox inbox;
  Outbox outbox;
};

}  // namespace

TEST_CASE("a message comes to its receive, whichever of the two is first", "[communicator]") {
  Post post(1 << 20);
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{50'000}}) {
    const std::string text(length, 'a');
    auto& early = post.receive(3, length);
    CHECK(post.send(3, text));
    post.take_in();
    CHECK(early.receipt.done);
    CHECK(early.text == text);
    CHECK(post.send(4, text));
    post.take_in();
    auto& late = post.receive(4, length);
    CHECK(late.receipt.done);
    CHECK(late.text == text);
  }
}

TEST_CASE("messages with one tag come in order, kept ones and others", "[communicator]") {
  Post post(1 << 20);
  CHECK(post.send(3, "one"));
  CHECK(post.send(9, "apart"));
  CHECK(post.send(3, "two"));
  post.take_in();
  auto& one = post.receive(3, 3);
  auto& two = post.receive(3, 3);
  auto& three = post.receive(3, 5);
  auto& four = post.receive(3, 4);
  CHECK(one.text == "one");
  CHECK(two.text == "two");
  CHECK_FALSE(three.receipt.done);
  CHECK(post.send(3, "three"));
  CHECK(post.send(3, "four"));
  post.take_in();
  CHECK(three.text == "three");
  CHECK(four.text == "four");
  CHECK(post.receive(9, 5).text == "apart");
}

TEST_CASE("a receive that comes while its message is taken in gets it", "[communicator]") {
  Post post(1 << 20);
  const std::string text(20'000, 'b');
  post.outbox.start({1, text.size(), 3, Dtype::u8, {}},
                    reinterpret_cast<const std::byte*>(text.data()));
  // The announcement and the first two parts.
  CHECK(post.outbox.advance() == Progress::moved);
  CHECK(post.inbox.pump() == Progress::moved);
  CHECK(post.outbox.advance() == Progress::moved);
  CHECK(post.inbox.pump() == Progress::moved);
  auto& received = post.receive(3, text.size());
  CHECK_FALSE(received.receipt.done);
  CHECK(post.go_on());
  post.take_in();
  CHECK(received.receipt.done);
  CHECK(received.text == text);
}

TEST_CASE("what is kept is bounded to the byte, and empty messages count", "[communicator]") {
  Post post(cost + 100);
  CHECK(post.send(1, std::string(101, 'x')));  // into a slot
  post.take_in();
  REQUIRE(post.inbox.held_back());
  CHECK(post.inbox.held_back()->tag == 1);
  CHECK(post.inbox.held_back()->count == 101);
  auto& first = post.receive(1, 101);
  post.take_in();
  CHECK(first.receipt.done);
  CHECK_FALSE(post.inbox.held_back());
  CHECK(post.send(2, std::string(100, 'y')));
  CHECK(post.send(3, ""));
  post.take_in();
  REQUIRE(post.inbox.held_back());
  CHECK(post.inbox.held_back()->tag == 3);
  CHECK(post.kept == cost + 100);
  // Room comes back with a receive.
  CHECK(post.receive(2, 100).text == std::string(100, 'y'));
  post.take_in();
  CHECK_FALSE(post.inbox.held_back());
  CHECK(post.kept == cost);
  CHECK(post.receive(3, 0).receipt.done);
  CHECK(post.kept == 0);

  Post nothing(0);
  CHECK(nothing.send(1, ""));
  nothing.take_in();
  CHECK(nothing.inbox.held_back());
}

TEST_CASE("ends that differ clash, whichever comes first", "[communicator]") {
  for (const bool early : {true, false}) {
    Post post(1 << 20);
    if (early) post.receive(3, 4);
    CHECK(post.send(3, "three"));
    if (!early) {
      post.take_in();
      CHECK_FALSE(post.receive(3, 4).receipt.done);
    }
    post.take_in();
    CHECK(post.inbox.pump() == Progress::failed);
    CHECK(post.inbox.fault() == Code::mismatch);
    REQUIRE(post.inbox.clash());
    CHECK(post.inbox.clash()->sent.count == 5);
    CHECK(post.inbox.clash()->sent.number == 1);
    CHECK(post.inbox.clash()->wanted.count == 4);
    CHECK(post.inbox.clash()->wanted.number == 7);
  }
}

TEST_CASE("whatever is announced, nothing is made of it that does not fit", "[communicator]") {
  for (const std::uint64_t count :
       {std::uint64_t{1} << 61, ~std::uint64_t{0}, (std::uint64_t{1} << 61) + 1}) {
    Post post(1 << 20);
    CHECK(post.announce({1, count, 3, Dtype::f64, {}}) == Progress::waiting);
    REQUIRE(post.inbox.held_back());
    Receipt receipt{{1, 1, 3, Dtype::f64, {}}, nullptr, false};
    post.inbox.post(receipt);
    CHECK(post.inbox.pump() == Progress::failed);
    CHECK(post.inbox.fault() == Code::mismatch);
  }
  for (const Announcement& wrong :
       {Announcement{1, 1, 0, Dtype::f64, {}}, Announcement{1, 1, 3, static_cast<Dtype>(77), {}}}) {
    Post post(1 << 20);
    CHECK(post.announce(wrong) == Progress::failed);
    CHECK(post.inbox.fault() == Code::remote_error);
    CHECK(post.inbox.pump() == Progress::failed);
  }
}

TEST_CASE("memory that is not there fails the inbox and nothing else", "[communicator]") {
  Post post(std::uint64_t{1} << 60);
  CHECK(post.announce({1, std::uint64_t{1} << 59, 3, Dtype::u8, {}}) == Progress::failed);
  CHECK(post.inbox.fault() == Code::out_of_memory);
}

TEST_CASE("tags are counted apart, and those forgotten do not count from 1 again",
          "[communicator]") {
  TagCounts counts;
  for (std::uint64_t number = 1; number <= 5; ++number) CHECK(counts.next(7) == number);
  for (std::uint32_t tag = 100; tag < 100 + TagCounts::most - 1; ++tag)
    CHECK(counts.next(tag) == 1);
  CHECK(counts.next(7) == 6);
  CHECK(counts.next(1) == 7);  // one too many
  CHECK(counts.next(7) == 7);
  CHECK(counts.next(7) == 8);
  CHECK(counts.next(100) == 7);
}
