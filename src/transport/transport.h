// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/doorbell.h"
#include "base/peer_memory.h"
#include "base/system.h"
#include "transport/channel.h"

namespace khoro {

/// All that a transport knows of a rank: which process it is in and how that is reached. Never a
/// site, plan or algorithm.
struct Endpoint {
  int rank = 0;
  /// Equal for ranks that share an address space; drawn at random by each process.
  std::uint64_t process = 0;
  /// The rank's shared memory; -1 if it has none that this process can map. Borrowed until the
  /// transport is made.
  int memory = -1;
  /// Wakes the rank. It must exist.
  Doorbell doorbell;
  /// Connected to the rank, one for each stripe, in the same order there; empty if there are none.
  /// Non-blocking and authenticated. Borrowed.
  std::vector<int> sockets = {};
  /// The memory that its process shares for its callers, as this process has it mapped; empty if it
  /// is this process, or has not. Borrowed.
  std::span<std::byte> arena = {};
  /// The other memory of its process, if this one may read it.
  PeerMemory private_memory = {};
};

/// What one rank of one communicator tells a transport before it opens channels.
struct TransportSetup {
  int rank = 0;
  /// Of all ranks, by rank.
  std::vector<Endpoint> endpoints;
  /// The part of every rank's shared memory that belongs to the transport: whole pages, zeroed, the
  /// same part for all ranks.
  std::uint64_t area_offset = 0;
  std::uint64_t area_bytes = 0;
  /// What this process shares of its callers' memory; null if nothing. Borrowed.
  Arena* arena = nullptr;
};

/// How fast one way between two endpoints is.
struct Route {
  double bytes_per_second = 0;
  double latency_seconds = 0;
};

/// What one end of a channel is called: the peer's endpoint and the index among the channels of
/// that pair and direction.
struct ChannelName {
  int peer = 0;
  std::uint8_t index = 0;
};

struct ChannelShape {
  /// D: so many messages can be under way, however late their releases are told.
  std::uint32_t slots = 8;
  std::uint32_t slot_bytes = 65'536;

  /// Bytes that messages that are not small, nor longer than part_most, may hold together before
  /// Sender::use_all_slots(): so a channel that passes no others needs little memory. A multiple of
  /// part_most, and twice that at least: for two of them there is always room.
  std::uint32_t parts_bytes = 2 * part_most;

  static constexpr std::uint32_t part_most = 65'536;
  static constexpr std::uint32_t least_slots = 2;
  /// Messages of so many bytes or less are small.
  constexpr std::uint32_t small_bytes() const noexcept {
    return std::min<std::uint32_t>(slot_bytes, 4096);
  }
};

/// A transport as one rank of one communicator uses it: opens the ends of channels over descriptors
/// that were connected and authenticated by others. Both ends of a channel are opened with the same
/// shape, in any order, and either may be used at once. One thread at a time uses it and its ends.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const noexcept = 0;
  /// Nothing if the peer cannot be reached this way.
  virtual std::optional<Route> reach(const Endpoint& peer) const = 0;
  /// Throw `Error` when memory or descriptors run out, and if the end was opened before. The ends
  /// may not outlive the transport, nor it the doorbells of its endpoints.
  virtual std::unique_ptr<Sender> open_sender(const ChannelName& name, ChannelShape shape) = 0;
  virtual std::unique_ptr<Receiver> open_receiver(const ChannelName& name, ChannelShape shape) = 0;

  /// Readable while something may have come that rings no doorbell, so that whoever sleeps must
  /// wait for it too; -1 if everything rings.
  virtual int descriptor() const noexcept { return -1; }
  /// Blocks until what was sent is out of this process's hands, so that nothing of it is lost if
  /// the process ends, or so much time has passed. The ends are not used meanwhile.
  virtual void drain(System& /*system*/, Duration /*most*/) noexcept {}
  /// After a failure, before those who own the memory have it back: takes back what was lent to
  /// ranks of other processes (see Receiver::intact()), and moves the pages of open windows out of
  /// their reach. The ends are not used any more. False if there was no memory for that.
  virtual bool withdraw() noexcept { return true; }

  // For statistics: any thread, while no end is being closed.

  /// Bytes of memory this rank owns for its channels.
  virtual std::uint64_t bytes_held() const noexcept = 0;
  /// Bytes that this rank's senders have written for their peers, headers included; what a peer
  /// reads in place, or is put straight into its memory, is not.
  virtual std::uint64_t bytes_sent() const noexcept = 0;
  /// The same by stripe, where there are stripes.
  virtual std::vector<std::uint64_t> bytes_by_stripe() const { return {}; }
};

}  // namespace khoro
