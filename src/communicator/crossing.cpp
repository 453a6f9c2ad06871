// SPDX-License-Identifier: Apache-2.0
#include "communicator/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "communicator/report.h"
#include "communicator/residents.h"

namespace khoro {
namespace {

/// A rank that is waited for, wherever it lives and whatever other ranks its threads are.
struct Missing {
  int rank = 0;
  std::int32_t pid = 0;
  std::uint64_t thread = 0;  // of its last call; 0: unknown
};

std::uint64_t last_thread(const RankPage& page) {
  const auto call = page.record(page.calls());
  if (call) return call->thread;
  const auto message = page.message(page.messages());
  return message ? message->thread : 0;
}

bool may_be_one(std::uint64_t thread, std::uint64_t other) noexcept {
  return thread == 0 || other == 0 || thread == other;
}

std::vector<Missing> missing(const Communicator& waiting, const CallRecord& call, int waited_for) {
  std::vector<int> ranks;
  if (!call.signature.point_to_point())
    ranks = missing_ranks(waiting.peers(), call.number);
  else if (waited_for >= 0 && waited_for < waiting.ranks())
    ranks.push_back(waited_for);
  std::vector<Missing> all;
  for (const int rank : ranks)
    all.push_back({rank, waiting.peers().pid(rank), last_thread(waiting.peers().page(rank))});
  return all;
}

/// What `rank` has under way in `other` that waits for the rank of this process.
std::optional<CallRecord> waits_for_us(const Communicator& other, int rank) {
  const RankPage& page = other.peers().page(rank);
  const RankPage& ours = other.peers().page(other.rank());
  for (const CallRecord& call : page.under_way().calls) {
    const bool message = call.signature.point_to_point();
    if (message && call.signature.peer != other.rank()) continue;
    if (lacks(ours, rank, call)) return call;
  }
  return std::nullopt;
}

}  // namespace

std::string crossing(const Communicator& waiting, const CallRecord& call, int waited_for) {
  const auto absent = missing(waiting, call, waited_for);
  std::string text;
  Residents::of_process().visit_all([&](const Communicator& other) {
    if (!text.empty() || other.identity() == waiting.identity() || other.stopped()) return;
    const RankPage& ours = other.peers().page(other.rank());
    if (!may_be_one(last_thread(ours), call.thread)) return;
    for (int rank = 0; rank < other.ranks(); ++rank) {
      if (rank == other.rank()) continue;
      const auto theirs = waits_for_us(other, rank);
      if (!theirs) continue;
      const auto same = std::find_if(absent.begin(), absent.end(), [&](const Missing& each) {
        // Ranks of one process that have made no call yet are told apart by their number alone.
        return each.pid == other.peers().pid(rank) &&
               (each.thread == 0 ? each.rank == rank : each.thread == theirs->thread);
      });
      if (same == absent.end()) continue;
      text = fmt::format(
          "communicators {} and {} are used in crossed order: rank {} waits in {} of communicator "
          "{} for {}, which waits in {} of communicator {} for this process (communicators are "
          "numbered as this process made them); make calls on them in the same order on every "
          "rank, put them into one group, or use a thread for each",
          std::min(waiting.ordinal(), other.ordinal()),
          std::max(waiting.ordinal(), other.ordinal()), waiting.rank(),
          title(call.signature, call.number, call.tag), waiting.ordinal(),
          waiting.peers().who(same->rank), title(theirs->signature, theirs->number, theirs->tag),
          other.ordinal());
      return;
    }
  });
  return text;
}

}  // namespace khoro
