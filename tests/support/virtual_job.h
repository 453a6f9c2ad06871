// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/shared_memory.h"
#include "communicator/communicator.h"
#include "support/virtual_system.h"
#include "support/wants.h"
#include "transport/shm/shm.h"
#include "transport/wrap/death.h"
#include "transport/wrap/delay.h"

namespace khoro::test {

/// The ranks of one communicator, whole but for rendezvous and control thread, in one thread and
/// under a virtual clock: messages and notices come late, by draws from a seed, and one process may
/// die.
class VirtualJob {
 public:
  struct Setup {
    std::uint64_t seed = 0;
    Settings settings;
    /// Of each rank. Ranks of one process read each other's memory, and die together.
    std::vector<int> processes = {0, 1, 2, 3};
    Duration longest_delay = std::chrono::microseconds(20);
    VirtualSystem::Wakes wakes = VirtualSystem::Wakes::for_a_reason;
    /// This process dies, after so many events of its channels or at a time; -1: none does.
    int doomed = -1;
    std::uint64_t events = ~std::uint64_t{0};
    Time when = never;
  };

  /// Of as many processes as ranks, or of one.
  static Setup drawn(std::uint64_t seed, int ranks) {
    Setup setup;
    setup.seed = seed;
    setup.processes.assign(static_cast<std::size_t>(ranks), 0);
    if (mix(seed + 1) % 2 != 0) std::iota(setup.processes.begin(), setup.processes.end(), 0);
    setup.settings.slots = 2 + static_cast<std::int64_t>(mix(seed) % 7);
    setup.settings.slot_bytes = 256;
    setup.longest_delay = Duration(mix(seed + 2) % 50'000);
    return setup;
  }

  explicit VirtualJob(const Setup& setup)
      : setup_(setup),
        system_(setup.seed, setup.wakes),
        fate_(setup.events, [this] { die(); }),
        wants_(at(ranks()), Wants(system_)),
        tasks_(at(ranks()), no_task) {
    for (int rank = 0; rank < ranks(); ++rank) seat(rank);
    for (int rank = 0; rank < ranks(); ++rank) communicators_.push_back(make(rank));
    if (setup.doomed >= 0 && setup.when != never) system_.at(setup.when, [this] { fate_.die(); });
  }
  VirtualJob(const VirtualJob&) = delete;
  VirtualJob& operator=(const VirtualJob&) = delete;

  VirtualSystem& system() noexcept { return system_; }
  Time now() const noexcept { return system_.now(); }
  int ranks() const noexcept { return static_cast<int>(setup_.processes.size()); }
  Communicator& communicator(int rank) { return *communicators_.at(at(rank)); }
  /// Destroys the communicator of a rank, which so leaves in order.
  void leave(int rank) { communicators_.at(at(rank)).reset(); }

  /// What `rank` does in the next run().
  void play(int rank, std::function<void()> body) {
    tasks_[at(rank)] = system_.spawn(std::move(body), [this, rank] { return owed(rank); });
  }
  /// Plays to the end, and then has what the dead left on their stacks cleared away.
  VirtualSystem::End run() {
    const VirtualSystem::End end = system_.run();
    end_ = system_.now();
    if (end != VirtualSystem::End::all_ended) return end;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!dead(rank) || tasks_[at(rank)] == no_task) continue;
      if (communicators_[at(rank)]) communicators_[at(rank)]->abort();
      system_.thaw(tasks_[at(rank)]);
    }
    return system_.run();
  }
  /// When the last rank that lived had ended.
  Time end() const noexcept { return end_; }

  int process(int rank) const noexcept { return setup_.processes[at(rank)]; }
  bool doomed(int rank) const noexcept { return setup_.processes[at(rank)] == setup_.doomed; }
  bool dead(int rank) const noexcept { return doomed(rank) && fate_.dead(); }
  /// `never` if nobody died.
  Time time_of_death() const noexcept { return death_; }
  /// The lowest rank that died without having left; -1 if there is none.
  int culprit() const noexcept { return culprit_; }
  /// After an event a control message that tells of it has come within this.
  static constexpr Duration longest_notice = std::chrono::milliseconds(2);
  /// Events of the process that is doomed, so far.
  std::uint64_t events() const noexcept { return setup_.events - fate_.left(); }

 private:
  static constexpr std::size_t no_task = ~std::size_t{0};

  struct Seat {
    Descriptor memory;
    Mapping mapping;
    RankPage* page = nullptr;
    Doorbell doorbell;
  };

  /// Notices arrive late, and that a rank has left arrives after all else that came from it.
  class LatePeers final : public Peers {
   public:
    LatePeers(VirtualJob& job, int rank, std::vector<Member> members)
        : Peers(rank, std::move(members)), job_(job), notices_(at(ranks())), ends_(at(ranks())) {}

    std::optional<Cause> notice(int rank) const noexcept override {
      const auto cause = Peers::notice(rank);
      return cause && arrived(notices_[at(rank)]) ? cause : std::nullopt;
    }
    bool closed(int rank) const noexcept override {
      if (!Peers::closed(rank)) return false;
      if (told_of_end_) return true;
      return arrived(ends_[at(rank)]) && (!Peers::notice(rank) || notice(rank)) &&
             !job_.wants_[at(this->rank())].any_is_under_way(rank);
    }

    /// Has `communicator`, whose peers these are, told that a process ended.
    void tell_of_end(Communicator& communicator, int rank) {
      told_of_end_ = true;
      communicator.peer_ended(rank);
      told_of_end_ = false;
    }
    /// There is something to learn that nobody has looked at.
    bool any_is_there() const {
      for (int rank = 0; rank < ranks(); ++rank) {
        if (rank == this->rank()) continue;
        if (page(rank).posted() && is_there(notices_[at(rank)])) return true;
      }
      return false;
    }

   private:
    bool arrived(Time& when) const noexcept {
      if (when == Time(0)) when = job_.control_message_to(rank());
      return job_.system_.now() >= when;
    }
    bool is_there(Time when) const noexcept {
      return when == Time(0) || job_.system_.now() >= when;
    }

    VirtualJob& job_;
    mutable std::vector<Time> notices_;
    mutable std::vector<Time> ends_;
    bool told_of_end_ = false;
  };

  static std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }
  std::uint64_t area_bytes() const { return channel_bytes(setup_.settings, ranks()); }

  void seat(int rank) {
    Seat& seat = seats_.emplace_back();
    seat.memory = make_shared_memory("virtual rank", channel_area_offset + area_bytes());
    seat.mapping = Mapping::open(seat.memory.number(), channel_area_offset, "virtual rank");
    RankPage::Identity identity;
    identity.rank = rank;
    identity.ranks = ranks();
    seat.page = new (seat.mapping.bytes().data()) RankPage(identity);
    seat.doorbell = Doorbell(seat.page->doorbell(), -1);
  }

  std::unique_ptr<Communicator> make(int rank) {
    std::vector<Peers::Member> members;
    TransportSetup transport{rank, {}, channel_area_offset, area_bytes()};
    const int own = setup_.processes[at(rank)];
    for (int each = 0; each < ranks(); ++each) {
      const Seat& seat = seats_[at(each)];
      const int process = setup_.processes[at(each)];
      members.push_back({seat.page, seat.doorbell, 1000 + process, process == own});
      transport.endpoints.push_back(
          {each, static_cast<std::uint64_t>(process) + 1, seat.memory.number(), seat.doorbell});
    }
    Communicator::Parts parts;
    parts.identity = 4711;
    parts.settings = setup_.settings;
    parts.system = &wants_[at(rank)];
    parts.page = seats_[at(rank)].page;
    parts.doorbell = seats_[at(rank)].doorbell;
    auto peers = std::make_unique<LatePeers>(*this, rank, std::move(members));
    peers_.push_back(peers.get());
    parts.peers = std::move(peers);
    parts.transport =
        make_delay(wants_[at(rank)].watch(make_shm(transport)),
                   {system_, parts.doorbell, system_.draw(1u << 30) + 1, setup_.longest_delay});
    if (doomed(rank)) parts.transport = make_death(std::move(parts.transport), fate_);
    parts.patience.spins = static_cast<int>(system_.draw(4));
    parts.patience.yields = Duration(system_.draw(20'000));
    return std::make_unique<Communicator>(std::move(parts));
  }

  /// When a control message that is sent now reaches `rank`, which is rung then.
  Time control_message_to(int rank) {
    const Time when = system_.now() + Duration(system_.draw(longest_notice.count()));
    system_.at(when, [doorbell = seats_[at(rank)].doorbell] { doorbell.ring(); });
    return when;
  }

  /// The process takes no step more; each survivor is told after a while.
  void die() noexcept {
    death_ = system_.now();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (doomed(rank)) {
        if (culprit_ < 0 && communicators_[at(rank)]) culprit_ = rank;
        if (tasks_[at(rank)] != no_task) system_.freeze(tasks_[at(rank)]);
      } else {
        system_.at(control_message_to(rank), [this, rank] { tell_of_death(rank); });
      }
    }
    if (system_.in_task()) system_.yield();
  }
  void tell_of_death(int survivor) {
    if (!communicators_[at(survivor)]) return;
    for (int rank = 0; rank < ranks(); ++rank)
      if (doomed(rank)) peers_[at(survivor)]->tell_of_end(communicator(survivor), rank);
  }

  /// A sleeping rank should have been woken.
  bool owed(int rank) const {
    const auto& communicator = communicators_[at(rank)];
    return communicator && (communicator->stopped() || wants_[at(rank)].any_is_there() ||
                            peers_[at(rank)]->any_is_there());
  }

  Setup setup_;
  VirtualSystem system_;
  Fate fate_;
  std::vector<Wants> wants_;
  std::vector<std::size_t> tasks_;
  std::vector<LatePeers*> peers_;
  Time death_ = never;
  int culprit_ = -1;
  Time end_{0};
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace khoro::test
