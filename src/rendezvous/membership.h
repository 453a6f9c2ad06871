// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/time.h"
#include "rendezvous/listener.h"
#include "rendezvous/unique_id.h"

namespace khoro {

/// What a rank shows the others when it joins. What a peer passed is hostile until it was checked:
/// `memory`, `arena` and `gpu_memory` may be anything that can be opened.
struct Introduction {
  int rank = 0;
  std::uint64_t process = 0;  // drawn at random by the process
  /// The rank's shared memory (a sealed memfd), and an eventfd that wakes sleepers of its process.
  Descriptor memory;
  Descriptor doorbell;
  /// A pidfd of its process, and what that shares of its callers' memory, if anything. In a
  /// membership only the lowest rank of each other process has them, and no rank of one's own.
  Descriptor pidfd;
  Descriptor arena = {};
  /// What the rank shares of its GPU's memory, if that is shared by descriptor. In a membership no
  /// rank of one's own process has it.
  Descriptor gpu_memory = {};
  /// Where the rank listens for the stripes of others; none if it wants none.
  SocketAddress address = {};
};

/// The connected sockets of one rank: by the other rank, then by stripe. Empty where there are
/// none.
using Stripes = std::vector<std::vector<Descriptor>>;

/// Everybody that joined, by rank, with their descriptors. The owner of the membership owns them.
struct Membership {
  std::uint64_t communicator = 0;  // the same on all ranks, unlike any other communicator's
  std::vector<Introduction> members;
  Stripes stripes = {};  // of the rank that joined
};

/// Who wants to join, and what must be the same on all ranks: lines "name=value", 3,840 bytes at
/// most. The first that differs fails init on all ranks, named with both values.
struct Guest {
  int ranks = 0;
  Introduction introduction;
  std::string facts;
  /// So many sockets are connected to each other rank, which wants as many; with a listener.
  int stripes = 0;
  Listener listener = {};
  /// What its process shares, to be shown as the introduction's arena; -1: nothing. Borrowed.
  int arena = -1;
};

/// What a rank does with everybody's descriptors before init succeeds anywhere; may throw.
using Prepare = std::function<void(Membership&)>;

/// How long a rank waits for the others.
struct Until {
  Until(Time when, const Interrupt* by = nullptr) : deadline(when), interrupt(by) {}

  Time deadline;
  /// Ends the wait with `aborted`, here and on the other ranks, when it is raised. Null: never.
  const Interrupt* interrupt;
};

/// Meets the other ranks under `id`: authenticates both ways, hands over the guest's introduction,
/// receives everybody's and connects the stripes. A `Meeting` serves at the other end. Blocks until
/// all ranks have come and prepared. Any thread; each rank once. Throws `Error`, on all ranks alike
/// where it concerns all: timeout naming the ranks that did not come, peer_died naming the one that
/// left, aborted naming the one that was interrupted, remote_error with the reason of the rank
/// whose `prepare` threw or that declined, mismatch for facts, invalid_argument for a rank that was
/// there already or unequal sizes.
Membership join(const UniqueId& id, Guest guest, const Until& until, const Prepare& prepare = {});

/// Says, in place of join(), why this rank does not come: the others fail at once rather than at
/// their deadline, with peer_died if that is the reason, else with remote_error. Gives up silently.
void decline(const UniqueId& id, int ranks, int rank, const Error& reason,
             const Until& until) noexcept;

/// The membership of ranks that all live in this process and need not meet.
Membership join_directly(std::vector<Introduction> members);

}  // namespace khoro
