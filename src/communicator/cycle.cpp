// SPDX-License-Identifier: Apache-2.0
#include "communicator/cycle.h"

#include <fmt/format.h>

#include <algorithm>

#include "communicator/report.h"

namespace khoro {
namespace {

constexpr std::string_view cycle_words = "a cycle, in which nobody can go on: ";
constexpr std::string_view tag_buffer_words =
    ", or raise KHORO_TAG_BUFFER, up to which a rank keeps messages with tags that it has yet to "
    "receive";

/// The call that a peer waits for a rank to make. The rank makes it as soon as what it has under
/// way in the same order (its collectives, its sends to one peer) has ended.
struct Need {
  CallKind kind = CallKind::allreduce;
  int peer = 0;           // of a message
  std::uint32_t tag = 0;  // of a message

  bool in_order_with(const CallRecord& call) const noexcept {
    const Signature need{kind}, &other = call.signature;
    if (!need.point_to_point() || !other.point_to_point())
      return need.point_to_point() == other.point_to_point();
    if (other.kind != kind || other.peer != peer) return false;
    return kind == CallKind::send ? (call.tag != 0) == (tag != 0) : call.tag == tag;
  }
};

class Search {
 public:
  explicit Search(const Peers& peers)
      : peers_(peers), visited_(static_cast<std::size_t>(peers.ranks())) {}

  Cycle from(int rank) {
    target_ = rank;
    for (const Step& step : steps_of(rank, look_at(rank)))
      if (follow(step)) return {std::move(path_)};
    return {};
  }

 private:
  struct Step {
    Wait wait;
    Need need;  // of wait.peer
  };
  /// What a rank shows at one moment.
  struct Seen {
    RankPage::Stuck stuck;
    std::vector<CallRecord> under_way;
  };

  bool follow(const Step& step) {
    path_.push_back(step.wait);
    const int rank = step.wait.peer;
    // Entered by a need, and the need must not be met by what lies before it in the same order.
    if (!visited_[static_cast<std::size_t>(rank)]) {
      const Seen seen = look_at(rank);
      const auto before = [&](const CallRecord& call) { return step.need.in_order_with(call); };
      const bool queued = std::any_of(seen.under_way.begin(), seen.under_way.end(), before);
      if (rank == target_) {
        if (!queued || before(path_.front().call)) return true;
      } else {
        visited_[static_cast<std::size_t>(rank)] = true;
        for (const Step& next : steps_of(rank, seen))
          if ((!queued || before(next.wait.call)) && follow(next)) return true;
      }
    }
    path_.pop_back();
    return false;
  }

  /// What it says of itself comes first: it is true of calls that were under way then.
  Seen look_at(int rank) const {
    return {peers_.page(rank).stuck_times(peers_.ranks()), under_way(rank)};
  }

  /// What the rank has under way; nothing where not all of it is known.
  std::vector<CallRecord> under_way(int rank) const {
    auto [calls, complete] = peers_.page(rank).under_way();
    if (!complete) calls.clear();
    return std::move(calls);
  }

  std::vector<Step> steps_of(int rank, const Seen& seen) const {
    std::vector<Step> steps;
    if (seen.stuck.times == 0) return steps;
    for (const CallRecord& call : seen.under_way) {
      const auto add = [&](int peer, const Need& need) {
        steps.push_back({{rank, call, peer, seen.stuck.times, seen.stuck.moves}, need});
      };
      if (call.signature.point_to_point())
        add_message(rank, call, add);
      else
        add_collective(rank, call, seen.stuck.peer, add);
    }
    return steps;
  }

  template <class Add>
  void add_message(int rank, const CallRecord& call, Add add) const {
    const int peer = call.signature.peer;
    if (peer < 0 || peer >= peers_.ranks() || peer == rank) return;
    if (lacks(peers_.page(peer), rank, call))
      add(peer, {other_end(call.signature.kind), rank, call.tag});
  }

  template <class Add>
  void add_collective(int rank, const CallRecord& call, int waits_for, Add add) const {
    const Need need{call.signature.kind, 0};
    if (call.signature.moves_nothing()) return;
    const Collective collective = call.signature.collective(peers_.ranks());
    for (int peer = 0; peer < peers_.ranks(); ++peer) {
      // Where one rank gives to all, or all to one, others are needed as far as they are on the
      // way.
      const bool gives = collective.has_input(peer) && collective.has_output(rank);
      if (peer != waits_for && !gives) continue;
      if (peers_.page(peer).calls() < call.number) add(peer, need);
    }
  }

  const Peers& peers_;
  int target_ = 0;
  std::vector<bool> visited_;
  std::vector<Wait> path_;
};

}  // namespace

bool Cycle::confirms(const Cycle& before) const noexcept {
  return !waits.empty() && std::equal(waits.begin(), waits.end(), before.waits.begin(),
                                      before.waits.end(), [](const Wait& now, const Wait& then) {
                                        return now.rank == then.rank && now.peer == then.peer &&
                                               now.call.number == then.call.number &&
                                               now.call.signature == then.call.signature &&
                                               now.call.tag == then.call.tag &&
                                               now.times != then.times && now.moves == then.moves;
                                      });
}

Cycle find_cycle(const Peers& peers, int rank) { return Search(peers).from(rank); }

std::string describe(const Cycle& cycle) {
  std::string text(cycle_words);
  bool collective = false;
  bool full = false;  // some rank keeps no more messages with tags
  // The same on every rank: it begins with the lowest.
  std::vector<Wait> waits = cycle.waits;
  std::rotate(waits.begin(),
              std::min_element(waits.begin(), waits.end(),
                               [](const Wait& a, const Wait& b) { return a.rank < b.rank; }),
              waits.end());
  for (const Wait& wait : waits) {
    const CallKind kind = wait.call.signature.kind;
    collective |= !wait.call.signature.point_to_point();
    full |= kind == CallKind::send && wait.call.tag != 0;
    text += fmt::format("rank {} waits in {}, {}, for rank {} to {}; ", wait.rank,
                        describe(wait.call.signature, wait.call.tag),
                        title(kind, wait.call.number, wait.call.tag), wait.peer,
                        kind == CallKind::recv   ? "send"
                        : kind == CallKind::send ? "receive"
                                                 : "call it");
  }
  text += collective ? "make these calls in an order in which each finds its peers"
                     : "put the sends and receives of a step into one group (khoroGroupStart), or "
                       "let one rank send before it receives";
  if (full) text += tag_buffer_words;
  return text;
}

std::optional<HeldBack> find_held_back(const Peers& peers, int rank) {
  const RankPage& page = peers.page(rank);
  const auto lacked = page.held_back();
  if (!lacked || lacked->signature.kind != CallKind::recv) return std::nullopt;
  for (const CallRecord& call : page.under_way().calls)
    if (call.signature.kind == CallKind::recv && call.tag != 0 &&
        call.signature.peer == lacked->signature.peer)
      return HeldBack{rank, call, *lacked};
  return std::nullopt;
}

std::string describe(const HeldBack& held_back) {
  const auto& [rank, waits, lacked] = held_back;
  Signature sent = lacked.signature;
  sent.kind = CallKind::send;
  sent.peer = rank;
  return fmt::format(
      "{}rank {} waits in {}, {}, for rank {} to send, which has called {}, {}, before that; rank "
      "{} has not received it and has no room to keep it; receive messages in the order in which "
      "they are sent, or put the receives of a step into one group (khoroGroupStart){}",
      cycle_words, rank, describe(waits.signature, waits.tag),
      title(CallKind::recv, waits.number, waits.tag), lacked.signature.peer,
      describe(sent, lacked.tag), title(CallKind::send, lacked.number, lacked.tag), rank,
      tag_buffer_words);
}

}  // namespace khoro
