// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "base/doorbell.h"
#include "communicator/stream_queue.h"
#include "communicator/wait.h"

namespace khoro {

/// What the worker of streams and the threads that give it work share.
struct StreamDesk {
  std::mutex mutex;
  // Under the mutex.
  StreamQueue queue;
  bool closing = false;  // the worker ends when the queue is empty
  std::condition_variable told;

  /// Not 0: the desk has changed since the worker looked.
  std::atomic<std::uint32_t> changed{0};
  Doorbell doorbell;  // of the worker

  /// Has the worker look; after the change, without the mutex.
  void ring() noexcept {
    changed.exchange(1, std::memory_order_seq_cst);  // before the ring, as a doorbell wants it
    doorbell.ring();
  }
};

/// What the worker does in turn: it steps the calls that run, on whatever streams and
/// communicators, and blocks in none of them. As drive() wants it.
///
/// A communicator is its owner's again as soon as its line has ended, so its doorbell must be
/// disarmed before that. drive() disarms after each look that moved something; hence what has ended
/// is told in the next look.
class StreamRounds {
 public:
  explicit StreamRounds(StreamDesk& desk);

  Progress advance() noexcept;
  bool examine(Time now) noexcept;
  bool stopped() const noexcept { return false; }
  Time wake_by(Time now) const noexcept;
  std::span<const Doorbell> doorbells() const noexcept { return doorbells_; }
  /// Follows what runs.
  const Patience& patience() const noexcept { return patience_; }

 private:
  struct Running {
    TaskPointer task;
    Time until = never;
    bool begun = false;
    bool ended = false;
    bool leaves = false;  // it has failed; other ranks may still read its buffers
    Time leave_by = never;
  };
  /// A communicator with calls that wait, none of which runs.
  struct Waiting {
    Communicator* communicator = nullptr;
    Time until = never;
    std::size_t calls = 0;
  };

  /// Tells what has ended and takes what has come. False when there is nothing left to do for ever.
  bool turn() noexcept;
  void settle_lines();
  void look_at_lines();
  Progress step(Running& running) noexcept;
  void fail(Running& running) noexcept;
  void end(Running& running, Code code) noexcept;

  StreamDesk& desk_;
  Patience patience_;
  bool turn_is_due_ = false;
  bool failed_ = false;  // something has, and what waits behind it must be told
  std::vector<Running> running_;
  std::vector<Waiting> waiting_;
  std::vector<Doorbell> doorbells_;  // the worker's own first
};

}  // namespace khoro
