// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "communicator/peers.h"

namespace khoro {

/// One rank that waits in a call for another rank to make a call.
struct Wait {
  int rank = 0;
  CallRecord call;
  int peer = 0;
  /// How often the rank had said that it is stuck.
  std::uint32_t times = 0;
};

/// Ranks of one communicator that wait for each other in a circle, each in a call that cannot end
/// before the next one makes a call that it has not made, and cannot make before its own call has
/// ended. Seen once it may be an old picture: some rank may be about to find that it can go on.
struct Cycle {
  std::vector<Wait> waits;  // waits[i].peer == waits[i + 1].rank, in a circle

  explicit operator bool() const noexcept { return !waits.empty(); }
  /// Every rank has tried since `before` was seen, and is stuck in the same call.
  bool confirms(const Cycle& before) const noexcept;
};

/// A circle with rank `rank` in it, from what ranks that have waited a while say. Empty if there is
/// none.
Cycle find_cycle(const Peers& peers, int rank);

/// Who waits for whom in which call, and what to do.
std::string describe(const Cycle& cycle);

}  // namespace khoro
