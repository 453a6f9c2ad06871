// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_memory.h"
#include "communicator/communicator.h"
#include "support/virtual_system.h"
#include "transport/shm/shm.h"
#include "transport/wrap/death.h"
#include "transport/wrap/delay.h"

namespace khoro::test {

/// The ranks of one communicator, whole but for rendezvous and control thread, in one thread and
/// under a virtual clock: messages and notices come late, by draws from a seed, and one rank may
/// die.
class VirtualJob {
 public:
  struct Setup {
    int ranks = 4;
    std::uint64_t seed = 0;
    Settings settings;
    /// Ranks read each other's memory, as threads do.
    bool one_process = false;
    Duration longest_delay = std::chrono::microseconds(20);
    /// This rank dies after so many events of its channels; -1: none.
    int doomed = -1;
    std::uint64_t events = 0;
  };

  explicit VirtualJob(const Setup& setup)
      : setup_(setup), system_(setup.seed), fate_(setup.events) {
    for (int rank = 0; rank < setup.ranks; ++rank) seat(rank);
    for (int rank = 0; rank < setup.ranks; ++rank) communicators_.push_back(make(rank));
  }

  VirtualSystem& system() noexcept { return system_; }
  Communicator& communicator(int rank) { return *communicators_.at(at(rank)); }
  bool dead(int rank) const noexcept { return rank == setup_.doomed && fate_.dead(); }

 private:
  struct Seat {
    Descriptor memory;
    Mapping mapping;
    RankPage* page = nullptr;
    Doorbell doorbell;
  };

  /// Notices arrive late, and none from the dead.
  class LatePeers final : public Peers {
   public:
    LatePeers(VirtualJob& job, int rank, std::vector<Member> members)
        : Peers(rank, std::move(members)), job_(job), notices_(at(ranks())), ends_(at(ranks())) {}

    std::optional<Cause> notice(int rank) const noexcept override {
      job_.look_for_death();
      const auto cause = Peers::notice(rank);
      return cause && arrived(notices_[at(rank)], rank) ? cause : std::nullopt;
    }
    bool closed(int rank) const noexcept override {
      return Peers::closed(rank) && arrived(ends_[at(rank)], rank);
    }

   private:
    bool arrived(Time& when, int from) const noexcept {
      if (job_.dead(from) || job_.dead(rank())) return false;
      if (when == Time(0)) when = job_.control_message_to(rank());
      return job_.system_.now() >= when;
    }

    VirtualJob& job_;
    mutable std::vector<Time> notices_;
    mutable std::vector<Time> ends_;
  };

  static std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }
  ChannelShape shape() const noexcept {
    return {static_cast<std::uint32_t>(setup_.settings.slots),
            static_cast<std::uint32_t>(setup_.settings.slot_bytes)};
  }
  std::uint64_t area_bytes() const { return shm::area_bytes(setup_.ranks, 4, shape()); }

  void seat(int rank) {
    Seat& seat = seats_.emplace_back();
    seat.memory = make_shared_memory("virtual rank", channel_area_offset + area_bytes());
    seat.mapping = Mapping::open(seat.memory.number(), channel_area_offset, "virtual rank");
    RankPage::Identity identity;
    identity.rank = rank;
    identity.ranks = setup_.ranks;
    seat.page = new (seat.mapping.bytes().data()) RankPage(identity);
    seat.doorbell = Doorbell(seat.page->doorbell(), -1);
  }

  std::unique_ptr<Communicator> make(int rank) {
    std::vector<Peers::Member> members;
    TransportSetup transport{rank, {}, channel_area_offset, area_bytes()};
    for (int each = 0; each < setup_.ranks; ++each) {
      const Seat& seat = seats_[at(each)];
      members.push_back({seat.page, seat.doorbell, 1000 + each, false});
      const auto process = static_cast<std::uint64_t>(setup_.one_process ? 1 : each + 1);
      transport.endpoints.push_back({each, process, seat.memory.number(), seat.doorbell});
    }
    Communicator::Parts parts;
    parts.identity = 4711;
    parts.settings = setup_.settings;
    parts.system = &system_;
    parts.page = seats_[at(rank)].page;
    parts.doorbell = seats_[at(rank)].doorbell;
    parts.peers = std::make_unique<LatePeers>(*this, rank, std::move(members));
    parts.transport =
        make_delay(make_shm(transport),
                   {system_, parts.doorbell, system_.draw(1u << 30) + 1, setup_.longest_delay});
    if (rank == setup_.doomed) parts.transport = make_death(std::move(parts.transport), fate_);
    parts.patience.spins = static_cast<int>(system_.draw(4));
    parts.patience.yields = Duration(system_.draw(20'000));
    return std::make_unique<Communicator>(std::move(parts));
  }

  /// When a control message that is sent now reaches `rank`, which is rung then.
  Time control_message_to(int rank) {
    const Time when = system_.now() + Duration(system_.draw(2'000'000));
    system_.at(when, [doorbell = seats_[at(rank)].doorbell] { doorbell.ring(); });
    return when;
  }

  /// Has the survivors told of a death, each after a while.
  void look_for_death() noexcept {
    if (announced_ || setup_.doomed < 0 || !fate_.dead()) return;
    announced_ = true;
    for (int rank = 0; rank < setup_.ranks; ++rank)
      if (rank != setup_.doomed)
        system_.at(control_message_to(rank),
                   [this, rank] { communicator(rank).peer_ended(setup_.doomed); });
  }

  Setup setup_;
  VirtualSystem system_;
  Fate fate_;
  bool announced_ = false;
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace khoro::test
