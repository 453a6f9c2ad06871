// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "base/descriptor.h"
#include "base/settings.h"
#include "base/shared_memory.h"
#include "communicator/communicator.h"
#include "communicator/gpu_seat.h"
#include "communicator/peer_arenas.h"
#include "communicator/rank_page.h"
#include "rendezvous/membership.h"

namespace khoro {

/// What a rank brings to a communicator before it has met the others: its shared memory with its
/// rank page. Throws `Error` when memory or descriptors have run out.
class Seat {
 public:
  Seat(int rank, int ranks, const Settings& settings);

  /// Hands over the descriptor of the memory, to be shown to the others, without those of the
  /// process. Once.
  Introduction introduction() noexcept;
  /// What this process shares with others of its callers' memory; -1 if it cannot, or if messages
  /// go over sockets. Where no rank is in another process, nobody need ask. Borrowed.
  int arena() noexcept;
  /// How many sockets this rank wants to each other one, and where it waits for them. Once.
  int stripes() const noexcept { return stripes_; }
  Listener listener() noexcept { return std::move(listener_); }

  /// Takes part with everybody who was introduced, this rank among them, and with its stripes to
  /// them; ranks of one process may share a membership, of which the stripes and the arenas are not
  /// used. What is left of the membership afterwards, all memory among it, is not needed any more.
  /// Throws `Error`, naming the rank whose memory is not what a correct rank shows.
  std::unique_ptr<Communicator> join(Membership& membership, Stripes stripes, PeerArenas arenas,
                                     const Settings& settings);

 private:
  int rank_;
  int ranks_;
  std::unique_ptr<GpuSeat> gpu_;  // null: on host memory
  std::uint64_t area_bytes_;      // of the host's channels
  std::uint64_t memory_bytes_;
  Descriptor memory_;
  std::shared_ptr<void> sleepers_;  // see Sleepers::keep()
  std::shared_ptr<Arena> arena_;
  int stripes_ = 0;
  Listener listener_;
};

}  // namespace khoro
