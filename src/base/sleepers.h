// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "base/doorbell.h"
#include "base/time.h"

namespace khoro {

/// The threads of this process that sleep in poll. A process has one descriptor by which all others
/// wake them, its bell, however many doorbells its threads wait for: one of the sleepers listens to
/// it and calls those whose doorbells have rung. Thread-safe.
class Sleepers {
 public:
  static Sleepers& of_process() noexcept;

  /// Whoever may sleep for long keeps this; descriptors are given up with the last of them. May
  /// throw bad_alloc.
  std::shared_ptr<void> keep();
  /// The bell: an eventfd, to be shown to other processes. Lives as long as somebody keeps it.
  /// Throws `Error`.
  int bell();
  /// See System::park().
  void sleep(std::span<const Doorbell> doorbells, Time until) noexcept;
  /// Calls those of whose doorbells one has rung.
  void wake() noexcept;

 private:
  /// What one sleeper polls: an eventfd of its own, in a set to which the bell can be added while
  /// it sleeps.
  struct Alarm {
    Descriptor set;
    Descriptor call;
  };
  struct Sleeper {
    std::span<const Doorbell> doorbells;
    std::unique_ptr<Alarm> alarm = nullptr;
    bool called = false;
    Sleeper* next = nullptr;
  };

  bool lie_down(Sleeper& sleeper) noexcept;
  void get_up(Sleeper& sleeper) noexcept;
  std::unique_ptr<Alarm> find_alarm() noexcept;
  void appoint_listener() noexcept;
  void call_rung() noexcept;

  void give_up() noexcept;

  std::mutex mutex_;
  std::size_t keepers_ = 0;
  Descriptor bell_;
  Sleeper* first_ = nullptr;
  const Alarm* listening_ = nullptr;  // the bell is in its set
  std::vector<std::unique_ptr<Alarm>> unused_;
};

}  // namespace khoro
