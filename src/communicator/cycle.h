// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "communicator/peers.h"

namespace khoro {

/// One rank that waits in a call for another rank to make a call.
struct Wait {
  int rank = 0;
  CallRecord call;
  int peer = 0;
  /// How often the rank had said that it is stuck, and that it was not meanwhile.
  std::uint32_t times = 0;
  std::uint32_t moves = 0;
};

/// Ranks of one communicator that wait for each other in a circle, each in a call that cannot end
/// before the next one makes a call that it has not made, and cannot make before its own call has
/// ended. Seen once it may be an old picture: some rank may be about to find that it can go on.
struct Cycle {
  std::vector<Wait> waits;  // waits[i].peer == waits[i + 1].rank, in a circle

  explicit operator bool() const noexcept { return !waits.empty(); }
  /// Every rank has tried since `before` was seen, and is stuck in the same call, without having
  /// sent or taken in anything meanwhile that it could go on with.
  bool confirms(const Cycle& before) const noexcept;
};

/// A circle with rank `rank` in it, from what ranks that have waited a while say. Empty if there is
/// none.
Cycle find_cycle(const Peers& peers, int rank);

/// Who waits for whom in which call, and what to do.
std::string describe(const Cycle& cycle);

/// One rank that waits for itself: for a message with a tag that comes behind another one on its
/// way, which the rank has not received and has no room to keep. That is certain at once, since the
/// rank makes no other call meanwhile.
struct HeldBack {
  int rank = 0;
  CallRecord waits;   // its receive
  CallRecord lacked;  // the receive that would let the other one in, from the same peer
};
/// From what the rank says; nothing if it says nothing of the kind.
std::optional<HeldBack> find_held_back(const Peers& peers, int rank);
std::string describe(const HeldBack& held_back);

}  // namespace khoro
