// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/descriptor.h"
#include "base/interrupt.h"
#include "base/time.h"

namespace khoro {

/// The control thread of a process: asleep until a peer's process ends, a visitor comes to a
/// meeting that is served here, or a time has come; a communicator of several ranks has it look at
/// them twice a second, and at calls on GPUs ten times. It never touches payload.
///
/// Callbacks run on it one after the other and do not block: they note what happened, ring
/// doorbells, and may add and drop watches, their own among them.
class Control {
 public:
  using Callback = std::function<void()>;

  /// Keeps a callback registered. Once it is destroyed, the callback does not run any more and is
  /// not running, except that a callback may drop its own watch. May not outlive the Control.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept {
      std::swap(control_, other.control_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Watch() {
      if (control_) control_->drop(number_);
    }
    explicit operator bool() const noexcept { return control_ != nullptr; }

   private:
    friend class Control;
    Watch(Control& control, std::uint64_t number) : control_(&control), number_(number) {}
    Control* control_ = nullptr;
    std::uint64_t number_ = 0;
  };

  /// Starts the thread, with all signals blocked. Throws `Error`.
  Control();
  /// Stops it. Not from a callback.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // The following: any thread. In a forked child, which has no such thread, watches do nothing.

  /// Calls once, when the process behind `pidfd` has ended: at once if it has already. The
  /// descriptor stays open as long as the watch, and is watched once at a time. Throws `Error`.
  [[nodiscard]] Watch when_ended(int pidfd, Callback callback);
  /// Calls as long as the descriptor is readable; else as when_ended().
  [[nodiscard]] Watch while_readable(int descriptor, Callback callback);
  /// Calls once, when the machine's clock shows `when` or later.
  [[nodiscard]] Watch at(Time when, Callback callback);

  /// Calls again and again, at the multiples of `period` on the machine's clock: what has the same
  /// period is called together, so that a process wakes up once for all.
  [[nodiscard]] Watch every(Duration period, Callback callback);

  /// Watches in force.
  std::size_t size() const;

 private:
  struct Entry {
    Callback callback;
    int descriptor = -1;
    bool once = false;
    Time when = never;
    Duration period{};  // of what every() calls; else 0
  };

  std::uint64_t add(Entry entry);
  void drop(std::uint64_t number) noexcept;
  using Times = std::multimap<Time, std::uint64_t>;
  Times::iterator time_of(const Entry& entry, std::uint64_t number) noexcept;
  void silence(const Entry& entry, std::uint64_t number) noexcept;
  void postpone(Entry& entry, std::uint64_t number) noexcept;
  void arm_timer() noexcept;
  void work() noexcept;
  void run(std::uint64_t number) noexcept;
  void run_timers() noexcept;
  bool forked() const noexcept;

  const pid_t process_;
  Descriptor events_;
  Descriptor timer_;
  Interrupt stop_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::map<std::uint64_t, std::shared_ptr<Entry>> entries_;
  Times times_;
  std::uint64_t next_number_ = 2;
  std::uint64_t running_ = 0;  // the entry whose callback runs now
  std::thread thread_;
};

}  // namespace khoro
