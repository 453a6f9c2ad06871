// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "base/descriptor.h"
#include "base/error.h"
#include "communicator/control.h"
#include "rendezvous/unique_id.h"

namespace khoro {

class Meeting;

/// What this process is to Khoro, and what its communicators share. Thread-safe.
class Process {
 public:
  /// Made on first use; lives until the process ends. Throws `Error`.
  static Process& self();

  /// Drawn at random: ranks with equal numbers share an address space.
  std::uint64_t number() const noexcept { return number_; }
  /// Where that is: who reads it there has read the memory of this process.
  const std::uint64_t* number_at() const noexcept { return &number_; }
  /// A descriptor that becomes readable, for whoever holds it, when this process ends. Throws
  /// `Error`.
  Descriptor open_pidfd();
  /// A descriptor by which whoever holds it wakes sleepers of this process: see Sleepers. Throws
  /// `Error`.
  Descriptor open_bell();
  /// Orders memory as if every thread of the process had executed a full fence. Slow.
  void fence_all_threads() const noexcept;

  /// The control thread, started if there is none; it ends with its last owner. Throws `Error`.
  std::shared_ptr<Control> control();
  /// Serves the meeting of an id on the control thread until it is over: at latest at `deadline` if
  /// nobody has come. Throws `Error`.
  void host(const UniqueId& id, Time deadline);
  /// Waits a moment for the meeting of `id`, if it is hosted here, to see its last guest off, and
  /// ends the control thread if nobody needs it.
  void end_hosting(const UniqueId& id) noexcept;
  /// Ends the meeting of `id`, if it is hosted here, with a reason that those who are there and
  /// come soon are told.
  void call_off(const UniqueId& id, const Error& reason) noexcept;
  /// Ends the meeting of `id` at once, if it is hosted here: nobody will come.
  void stop_hosting(const UniqueId& id) noexcept;

  /// The next thread of this process to join the launcher's job: 0, 1, ...
  int next_thread() noexcept { return threads_.fetch_add(1, std::memory_order_relaxed); }

  /// True in a process that was forked from one that uses Khoro: it has none of its threads, and
  /// may not speak in its ranks' names. One load.
  static bool forked() noexcept { return forked_.load(std::memory_order_relaxed); }

 private:
  struct Hosted {
    std::uint64_t communicator = 0;
    std::shared_ptr<Control> control;
    bool over = false;                 // then nothing but the control thread is left to be given up
    std::shared_ptr<Meeting> meeting;  // touched by the control thread alone
    Control::Watch watch;              // dropped before its control
    Control::Watch call_off;
  };

  Process();
  Descriptor open_lifeline();
  void close(std::uint64_t communicator) noexcept;
  bool sweep(std::uint64_t communicator) noexcept;

  static inline std::atomic<bool> forked_{false};
  std::uint64_t number_;
  std::atomic<int> threads_{0};
  std::mutex mutex_;
  std::weak_ptr<Control> control_;
  std::list<Hosted> hosted_;
  // A pipe into which nobody writes: it ends with the process, which alone holds the second end.
  Descriptor lifeline_, lifeline_held_;
};

}  // namespace khoro
