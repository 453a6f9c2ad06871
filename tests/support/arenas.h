// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/descriptor.h"
#include "base/doorbell.h"
#include "base/shared_memory.h"
#include "support/sockets.h"
#include "transport/transport.h"

namespace khoro::test {

/// Whether ranks say that they share an address space, or what their processes share. A test may
/// run in one thread of one process and still have the ranks treat each other as processes.
enum class Spaces { one, apart, sharing };

/// The memory, doorbells and sockets of a few ranks, as a rendezvous would have handed them round:
/// made before any fork, so that every process has all of them.
class Arenas {
 public:
  static constexpr std::uint64_t area_offset = 4096;
  static constexpr int stripes = 3;
  static constexpr std::uint64_t arena_bytes = 64 << 20;

  /// With so many sockets between two ranks: ports are scarce where a test makes thousands.
  Arenas(int ranks, std::uint64_t area_bytes, Spaces spaces, int sockets = stripes)
      : area_bytes_(area_bytes), connected_(sockets) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string label = "arena of rank " + std::to_string(rank);
      Rank& made = ranks_.emplace_back();
      made.memory = make_shared_memory(label, area_offset + area_bytes);
      made.mapping = Mapping::open(made.memory.number(), area_offset + area_bytes, label);
      made.event = make_doorbell_descriptor();
      if (spaces == Spaces::sharing) {
        made.arena = std::make_unique<Arena>(arena_bytes);
        made.shared = Mapping::open(made.arena->descriptor(), arena_bytes, label);
      }
      made.process = spaces == Spaces::one ? 1 : static_cast<std::uint64_t>(rank) + 1;
      for (int lower = 0; lower < rank; ++lower)
        for (int stripe = 0; stripe < connected_; ++stripe)
          sockets_[{lower, rank}].push_back(socket_pair());
    }
  }

  Doorbell doorbell(int rank) const {
    const Rank& of = ranks_.at(static_cast<std::size_t>(rank));
    return {*reinterpret_cast<DoorbellWord*>(of.mapping.bytes().data()), of.event.number()};
  }

  /// The channel area of a rank, to look at or to spoil.
  std::span<std::byte> area(int rank) const {
    const Rank& of = ranks_.at(static_cast<std::size_t>(rank));
    return of.mapping.bytes().subspan(area_offset);
  }

  /// What the process of a rank shares; null unless they are sharing.
  Arena* arena(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)).arena.get(); }

  TransportSetup setup(int rank) const {
    TransportSetup setup{rank, {}, area_offset, area_bytes_, arena(rank)};
    for (int each = 0; each < static_cast<int>(ranks_.size()); ++each) {
      const Rank& of = ranks_.at(static_cast<std::size_t>(each));
      setup.endpoints.push_back({each, of.process, of.memory.number(), doorbell(each), {}});
      if (each != rank) setup.endpoints.back().arena = of.shared.bytes();
      for (int stripe = 0; each != rank && stripe < connected_; ++stripe)
        setup.endpoints.back().sockets.push_back(socket(rank, each, stripe));
    }
    return setup;
  }

  /// The end of `rank` of a stripe between two ranks, to spoil.
  int socket(int rank, int peer, int stripe) const {
    const auto& both = sockets_.at({std::min(rank, peer), std::max(rank, peer)});
    return both.at(static_cast<std::size_t>(stripe)).at(rank < peer ? 0 : 1).number();
  }
  /// Closes what `rank` has, as its end would.
  void hang_up(int rank, int peer) {
    for (auto& ends : sockets_.at({std::min(rank, peer), std::max(rank, peer)}))
      ends.at(rank < peer ? 0 : 1) = Descriptor();
  }

 private:
  struct Rank {
    Descriptor memory;
    Mapping mapping;
    Descriptor event;
    std::uint64_t process = 0;
    std::unique_ptr<Arena> arena;
    Mapping shared;  // as the others see it
  };

  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::vector<std::array<Descriptor, 2>>>
      sockets_;  // the lower first
  std::uint64_t area_bytes_;
  int connected_;
};

}  // namespace khoro::test
