// SPDX-License-Identifier: Apache-2.0
// Messages with tags under a virtual clock, against a model of what is kept.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "communicator/group.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/seeds.h"
#include "support/virtual_job.h"

using namespace khoro;
using namespace std::chrono_literals;
using Catch::Contains;
using test::QuietLog;
using test::VirtualJob;

namespace {

struct Letter {
  std::uint32_t tag = 0;
  std::vector<std::int32_t> content;
};

/// What rank 0 sends to rank 1, in that order, and in which order rank 1 receives it.
struct Post {
  std::vector<Letter> sent;
  std::vector<std::size_t> order;

  explicit Post(std::uint64_t seed) {
    auto draw = [state = seed](std::uint64_t bound) mutable {
      return (state = mix(state)) % bound;
    };
    sent.resize(1 + draw(40));
    for (Letter& letter : sent) {
      letter.tag = static_cast<std::uint32_t>(1 + draw(6));
      letter.content.resize(draw(3) == 0 ? draw(2'000) : draw(30));
      std::iota(letter.content.begin(), letter.content.end(),
                static_cast<std::int32_t>(draw(1'000'000)));
    }
    order.resize(sent.size());
    std::iota(order.begin(), order.end(), 0);
    // Not far from the order in which they are sent, or anything.
    const std::uint64_t reach = draw(2) == 0 ? 3 : sent.size();
    for (std::size_t i = 0; i < order.size(); ++i)
      std::swap(order[i], order[std::min(order.size() - 1, i + draw(reach))]);
    std::map<std::uint32_t, std::vector<std::size_t>> in_order;
    for (std::size_t i = sent.size(); i-- > 0;) in_order[sent[i].tag].push_back(i);
    for (std::size_t& i : order) {
      auto& next = in_order[sent[i].tag];
      i = next.back();
      next.pop_back();
    }
  }

  static std::uint64_t cost(const Letter& letter) {
    return Inbox::bookkeeping + letter.content.size() * 4;
  }
  /// The model: the most that is kept at once, if all is received one after the other.
  std::uint64_t most_kept() const {
    std::vector<bool> taken(sent.size());
    std::size_t next = 0;
    std::uint64_t kept = 0, most = 0;
    for (const std::size_t wanted : order) {
      if (taken[wanted]) kept -= cost(sent[wanted]);
      for (; !taken[wanted]; ++next) {
        taken[next] = true;
        if (next == wanted) continue;
        kept += cost(sent[next]);
        most = std::max(most, kept);
      }
    }
    return most;
  }
};

VirtualJob::Setup setup_of(std::uint64_t seed, std::uint64_t limit) {
  VirtualJob::Setup setup = VirtualJob::drawn(seed, 2);
  setup.settings.tag_buffer = static_cast<std::int64_t>(limit);
  return setup;
}

Call call_of(CallKind kind, std::uint32_t tag, int peer, std::vector<std::int32_t>& data) {
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  return {
      {kind, Dtype::i32, Reduction::sum, peer, data.size()}, {bytes, bytes}, nullptr, nullptr, tag};
}

/// What a rank came to.
struct Told {
  Code code = Code::success;
  std::string words;
  Time when{};
};

/// Plays a post; each end in a group, or call by call.
class Played {
 public:
  Played(std::uint64_t seed, std::uint64_t limit, bool sends_grouped, bool receives_grouped)
      : post(seed), job_(setup_of(seed, limit)) {
    for (Letter& letter : post.sent) received.emplace_back(letter.content.size(), -1);
    play(0, sends_grouped, [this](std::size_t i) {
      return call_of(CallKind::send, post.sent[i].tag, 1, post.sent[i].content);
    });
    play(1, receives_grouped, [this](std::size_t i) {
      const std::size_t at = post.order[i];
      return call_of(CallKind::recv, post.sent[at].tag, 0, received[at]);
    });
    REQUIRE(job_.run() == test::VirtualSystem::End::all_ended);
    CHECK(job_.system().lost_wakeups() == 0);
  }

  bool right() const {
    for (std::size_t i = 0; i < received.size(); ++i)
      if (received[i] != post.sent[i].content) return false;
    return true;
  }

  Post post;
  std::vector<std::vector<std::int32_t>> received;
  Told told[2];

 private:
  template <class CallAt>
  void play(int rank, bool grouped, CallAt call_at) {
    job_.play(rank, [this, rank, grouped, call_at] {
      Communicator& communicator = job_.communicator(rank);
      Told& told = this->told[rank];
      try {
        Batch batch(communicator);
        for (std::size_t i = 0; i < post.sent.size(); ++i)
          grouped ? batch.add(call_at(i)) : communicator.run(call_at(i));
        if (grouped) run_together({&batch, 1});
        ended_well_[rank] = true;
        while (!ended_well_[1 - rank] && communicator.async_error() == Code::success)
          job_.system().sleep(5ms);
        if (communicator.stopped()) communicator.throw_cause();
      } catch (const Error& error) {
        told = {error.code(), error.what(), job_.system().now()};
      }
    });
  }

  VirtualJob job_;
  bool ended_well_[2] = {false, false};
};

}  // namespace

TEST_CASE("messages with tags are received in any order, within what is kept and not beyond",
          "[communicator]") {
  const QuietLog quiet;
  int failures = 0;
  test::for_each_seed(600, [&](std::uint64_t seed) {
    const std::uint64_t most = Post(seed).most_kept();
    const bool enough = seed % 2 == 0 || most == 0;
    const Played played(seed, enough ? most : most - 1, seed % 3 == 0, false);
    INFO("at most " << most << " bytes: " << played.told[0].words << "; " << played.told[1].words);
    if (enough) {
      CHECK(played.told[0].code == Code::success);
      CHECK(played.told[1].code == Code::success);
      CHECK(played.right());
      return;
    }
    ++failures;
    for (const Told& told : played.told) {
      CHECK(told.code == Code::mismatch);
      CHECK(told.when < 2s);
      CHECK_THAT(told.words, Contains("a cycle") && Contains("rank 1 waits in khoroRecvTag(") &&
                                 Contains("khoroSendTag(") && Contains("KHORO_TAG_BUFFER"));
    }
    CHECK(played.told[0].words == played.told[1].words);
  });
  if (!test::first_seed && !test::seed_count) CHECK(failures > 100);
}

TEST_CASE("a group receives in any order without keeping anything", "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(200, [&](std::uint64_t seed) {
    const Played played(seed, 0, seed % 2 == 0, true);
    INFO(played.told[0].words << "; " << played.told[1].words);
    CHECK(played.told[1].code == Code::success);
    CHECK(played.right());
  });
}

namespace {

/// Both ranks make their calls one after the other; how that ends on each.
std::vector<Told> play(const VirtualJob::Setup& setup,
                       const std::vector<std::vector<Call>>& calls) {
  VirtualJob job(setup);
  std::vector<Told> told(calls.size());
  for (int rank = 0; rank < static_cast<int>(calls.size()); ++rank)
    job.play(rank, [&, rank] {
      try {
        for (const Call& call : calls[static_cast<std::size_t>(rank)])
          job.communicator(rank).run(call);
      } catch (const Error& error) {
        told[static_cast<std::size_t>(rank)] = {error.code(), error.what(), job.now()};
      }
    });
  REQUIRE(job.run() == test::VirtualSystem::End::all_ended);
  CHECK(job.system().lost_wakeups() == 0);
  return told;
}

}  // namespace

TEST_CASE("who waits for something else of a peer takes in what it sends with tags",
          "[communicator]") {
  test::for_each_seed(200, [](std::uint64_t seed) {
    std::vector<std::int32_t> longer(20'000, 3), got(20'000), also_got(20'000), little(8, 5),
        few(8);
    const bool plain = seed % 3 == 0, both = seed % 3 == 1;
    const std::uint32_t other = plain ? 0 : 9;
    std::vector<std::vector<Call>> calls(2);
    calls[0] = {call_of(CallKind::send, 7, 1, longer), call_of(CallKind::send, other, 1, little)};
    calls[1] = {call_of(CallKind::recv, other, 0, few), call_of(CallKind::recv, 7, 0, got)};
    if (both) {
      calls[0] = {call_of(CallKind::send, 7, 1, longer), call_of(CallKind::recv, 8, 1, also_got)};
      calls[1] = {call_of(CallKind::send, 8, 0, longer), call_of(CallKind::recv, 7, 0, got)};
    }
    const auto told = play(setup_of(seed, 1 << 20), calls);
    INFO(told[0].words << "; " << told[1].words);
    CHECK(told[0].code == Code::success);
    CHECK(told[1].code == Code::success);
    CHECK(got == longer);
    CHECK((both ? also_got == longer : few == little));
  });
}

TEST_CASE("who has no room, or waits for a plain message that is not kept, is told of a cycle",
          "[communicator]") {
  const QuietLog quiet;
  test::for_each_seed(200, [](std::uint64_t seed) {
    std::vector<std::int32_t> longer(20'000, 3), got(20'000);
    const std::uint32_t first = seed % 2 == 0 ? 7 : 0, second = seed % 2 == 0 ? 0 : 7;
    const std::vector<std::vector<Call>> calls = {
        {call_of(CallKind::send, first, 1, longer), call_of(CallKind::send, second, 1, longer)},
        {call_of(CallKind::recv, second, 0, got), call_of(CallKind::recv, first, 0, got)}};
    for (const Told& told : play(setup_of(seed, first == 0 ? 1 << 20 : 1'000), calls)) {
      INFO(told.words);
      CHECK(told.code == Code::mismatch);
      CHECK(told.when < 2s);
      CHECK_THAT(told.words, Contains("a cycle") &&
                                 Contains(first == 0 ? "khoroSend(20000" : "khoroSendTag(20000") &&
                                 Contains(first == 0 ? "khoroRecvTag(20000" : "khoroRecv(20000"));
      if (first != 0) CHECK_THAT(told.words, Contains("KHORO_TAG_BUFFER"));
    }
  });
}

TEST_CASE("a message waits for the receive after one that has just got the message before it",
          "[communicator]") {
  VirtualJob::Setup setup = setup_of(1, 0);
  setup.longest_delay = Duration(0);
  VirtualJob job(setup);
  Communicator &sender = job.communicator(0), &receiver = job.communicator(1);
  std::vector<std::int32_t> out(3, 7), first(3), second(3), other(3);

  Operation wanted, beside;
  receiver.begin(wanted, call_of(CallKind::recv, 2, 0, first));
  receiver.begin(beside, call_of(CallKind::recv, 7, 0, other));
  Operation sent;
  std::vector<std::uint32_t> tags = {7, 2, 2};
  bool sending = false;
  const auto send = [&] {
    if (tags.empty()) return;
    if (!std::exchange(sending, true))
      sender.begin(sent, call_of(CallKind::send, tags.back(), 1, out));
    if (sender.advance(sent) != Progress::done) return;
    sender.finish(sent);
    sending = false;
    tags.pop_back();
  };
  // All that comes is taken in for the one that waits for another tag.
  for (int look = 0; look < 1'000; ++look) {
    send();
    REQUIRE(receiver.advance(beside) != Progress::done);
  }
  REQUIRE(wanted.receipt.done);
  Operation* const both[] = {&wanted, &beside};
  for (const Duration later : {0ms, 60ms, 700ms}) CHECK(receiver.examine(both, job.now() + later));

  REQUIRE(receiver.advance(wanted) == Progress::done);
  receiver.finish(wanted);
  Operation next;
  receiver.begin(next, call_of(CallKind::recv, 2, 0, second));
  Progress ends[] = {Progress::waiting, Progress::waiting};
  for (int look = 0; look < 1'000; ++look) {
    send();
    if (ends[0] != Progress::done) ends[0] = receiver.advance(next);
    if (ends[1] != Progress::done) ends[1] = receiver.advance(beside);
  }
  REQUIRE((ends[0] == Progress::done && ends[1] == Progress::done));
  receiver.finish(next);
  receiver.finish(beside);
  CHECK((first == out && second == out && other == out));
}
