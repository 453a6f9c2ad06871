// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/driver.h"

namespace khoro {

/// The blocks that the ranks of this process have on one GPU. They wait for each other, so that all
/// must have a place there which may be launched beside each other: the widest launch of each
/// communicator, times its ranks on the GPU. Those of a communicator that has one rank there take
/// turns with others where not all fit, in the order in which they are launched. Launches that can
/// do with fewer blocks than they would like may get fewer: they leave to communicators that are
/// there what these need, and half of the rest to those that may come. Thread-safe.
class GpuResidency {
 public:
  /// That of the GPU, which all ask for who are on it. Borrows the driver.
  static std::shared_ptr<GpuResidency> of(const Driver& driver, int device);
  GpuResidency(const Driver& driver, int device) noexcept : driver_(driver), device_(device) {}

  class Turn;
  /// A rank of a communicator.
  class Member {
   public:
    /// `ranks`: of the communicator on the GPU, in whatever process.
    Member(std::shared_ptr<GpuResidency> residency, std::uint64_t communicator, int ranks);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    /// Has the stream wait until the launch has places for `least` blocks, if need be, and keeps
    /// others from taking them. It blocks while others are between entering and having launched
    /// that came before, if it has to wait for them. Throws invalid_usage where it never has.
    Turn enter(const Launch& launch, int least, DeviceStream& stream);

   private:
    friend class Turn;
    friend class GpuResidency;
    struct Grant {
      int blocks;
      bool waits;  // for launches of others that take turns
    };
    // With the lock.
    Grant share(int blocks, int least);
    Grant take_turn(int blocks, int least);
    int needs(bool when_ended) const noexcept { return std::max(least_, when_ended ? 0 : widest_); }
    /// Without it. Null: nothing was launched.
    void launched(std::shared_ptr<DeviceEvent> ended) noexcept;

    const std::shared_ptr<GpuResidency> residency_;
    const std::uint64_t communicator_;
    const int ranks_;
    // Of a communicator with one rank on the GPU.
    int least_ = 0;                       // the most that any launch had to have
    int widest_ = 0;                      // of launches that have not ended, as far as was asked
    std::uint64_t entered_ = 0;           // its number, of one that is not launched yet; 0: none
    std::shared_ptr<DeviceEvent> ended_;  // of the last launch; null: it has ended
  };

  /// Between entering and having launched. Destroyed before launched(): nothing was.
  class Turn {
   public:
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { launched(nullptr); }
    /// That the launch may have.
    int blocks() const noexcept { return blocks_; }
    /// The launch is on its stream, and ends with the event, which is recorded once.
    void launched(std::shared_ptr<DeviceEvent> ended) noexcept {
      if (member_ != nullptr) std::exchange(member_, nullptr)->launched(std::move(ended));
    }

   private:
    friend class Member;
    /// `member`: null if it takes no turns.
    Turn(int blocks, Member* member) noexcept : blocks_(blocks), member_(member) {}
    const int blocks_;
    Member* member_;
  };

 private:
  /// Of a communicator with several ranks on the GPU, for all of them.
  struct Share {
    int members = 0;
    int blocks = 0;
  };
  /// Asks for the places, if that was not done for such blocks yet.
  void find_places(const Launch& launch);
  int shared() const noexcept;
  // Of the members that take turns.
  /// Places that one of them needs, at most: now, or when all launches have ended.
  int most_needed(bool when_ended) const noexcept;
  /// Places that launches of all but one have now; and those that these need.
  int running_beside(const Member* one) const noexcept;
  int needed_beside(const Member* one, bool when_ended) const noexcept;
  /// Asks which launches have ended.
  void forget_ended() noexcept;
  /// The ends of what others have launched, once all have that entered before `number`.
  std::vector<std::shared_ptr<DeviceEvent>> await_others(const Member* one, std::uint64_t number,
                                                         std::unique_lock<std::mutex>& lock);
  [[noreturn]] void refuse(int blocks, int ranks, int others) const;

  const Driver& driver_;
  const int device_;
  std::mutex mutex_;
  std::condition_variable launched_;
  std::uint64_t entered_ = 0;      // the last number
  std::uint32_t block_bytes_ = 0;  // the most of any launch
  int places_ = 0;                 // for such blocks; 0: not asked for yet
  std::map<std::uint64_t, Share> shares_;
  std::vector<Member*> alone_;
};

}  // namespace khoro
