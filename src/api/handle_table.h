// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "api/config.h"
#include "api/handles.h"
#include "api/making.h"
#include "communicator/communicator.h"
#include "khoro/khoro.h"

namespace khoro {

class StreamWorker;

/// The handles of communicators. Thread-safe.
///
/// A communicator is used by one thread at a time, which has claimed it. Its calls that are queued
/// on streams are made by the worker of streams, which owns it until the last of them has ended. A
/// claim tells whether that may be so by the same word that keeps out other threads.
class HandleTable {
 public:
  /// Takes the communicator over; NULL for none. Throws out_of_memory when there are too many.
  khoroComm_t add(std::unique_ptr<Communicator> communicator, const Chosen& chosen);
  /// Begins to make one; its handle is good for looking, aborting and destroying at once, and for
  /// calls once it is made. Throws `Error`.
  khoroComm_t add(Make make, const Chosen& chosen);
  /// Runs what makes a communicator of others and none for this rank, beside that of the handle,
  /// which the caller has claimed. Throws `Error`.
  void take_part(khoroComm_t handle, Make make);

  /// The right of one thread to make a call on a communicator; ends with its life.
  class Claim;
  /// The right of any thread to look at a communicator, or abort it; destroying waits for it.
  class Pin;

  /// Throw invalid_argument for a handle that is none. Claims throw invalid_usage if another thread
  /// is in a call on it, and if it is still being made or was finalized; why it could not be made,
  /// if so. claim() blocks until calls queued on streams have ended, at most for the
  /// communicator's deadline, which then fails it; claim_with_streams() leaves them.
  Claim claim(khoroComm_t handle);
  Claim claim_with_streams(khoroComm_t handle);
  /// None if there may be calls on streams.
  Claim try_claim(khoroComm_t handle);
  Pin pin(khoroComm_t handle);

  /// Whether a call goes on in the background. Once it says no, the communicator can be claimed.
  bool in_background(const Pin& pin);
  void end_in_background(Claim claim);

  /// Takes the communicator out; its handle is stale from then on. Ends the making of one that is
  /// not made yet, and gives null then. Blocks and throws as claim(), but takes what is closed.
  std::unique_ptr<Communicator> remove(khoroComm_t handle);

 private:
  static constexpr std::uint32_t closed = 1;
  /// A call that goes on although its function has returned.
  enum class Background : std::uint8_t { never, runs, ended };
  struct alignas(64) Entry : HandleEntry {
    static constexpr std::uint32_t kind = 0;
    static constexpr auto null_words =
        "the communicator is NULL; make one with khoroCommInitRank, khoroCommInitWorld or "
        "khoroCommInitAllHost";
    static constexpr auto stale_words =
        "the communicator handle is stale or was never made; use each handle as an init call wrote "
        "it, and not after khoroCommDestroy";
    static constexpr auto limit_words = "65,536 communicators are in use";

    // The generation whose calls may be made: that of the entry, or `closed` while it takes none.
    // So a claim looks at one word, whatever there is to know.
    std::atomic<std::uint32_t> open{closed};
    std::atomic<std::uint32_t> use{unused};
    std::unique_ptr<Communicator> communicator;
    Chosen chosen;
    std::unique_ptr<Making> making;       // null unless a thread of its own makes, or has made it
    std::unique_ptr<Making> taking_part;  // of the last take_part(); of who has claimed it
    std::atomic<Background> background{Background::never};
  };
  using Entries = Handles<khoroComm_t, Entry>;

  enum Use : std::uint32_t {
    unused = 0,
    claimed = 1,
    on_streams = 2,  // calls were left to the worker, which may have ended them
  };
  /// Undoes a claim of what was in that use before. Throws if that was another thread's.
  static void give_up(Entry& entry, std::uint32_t use);
  /// Claims it, if `generation` is that of the handle.
  Claim claim_if(Entry& entry, const std::atomic<std::uint32_t>& generation, khoroComm_t handle);
  /// Throws why it takes no calls.
  [[noreturn]] void throw_closed(khoroComm_t handle);

  Entries entries_;
  std::mutex mutex_;  // of ending in the background
};

class HandleTable::Claim {
 public:
  Claim(Claim&& other) noexcept
      : entry_(std::exchange(other.entry_, nullptr)), rest_(other.rest_) {}
  Claim& operator=(Claim&&) = delete;
  ~Claim() {
    if (entry_) entry_->use.store(rest_, std::memory_order_release);
  }
  explicit operator bool() const noexcept { return entry_ != nullptr; }
  /// It takes no more calls.
  void close() const noexcept { entry_->open.store(closed, std::memory_order_release); }
  /// The call that it is claimed for goes on although its function has returned, until
  /// end_in_background().
  void go_on_in_background() const noexcept {
    entry_->background.store(Background::runs, std::memory_order_release);
  }
  Communicator* operator->() const noexcept { return entry_->communicator.get(); }
  Communicator& operator*() const noexcept { return *entry_->communicator; }

  /// False: no calls of it are on streams, for sure.
  bool may_be_on_streams() const noexcept { return rest_ == on_streams; }
  /// The worker that owns the communicator; null if this thread does.
  std::shared_ptr<StreamWorker> owner();
  /// Calls will be left to the worker.
  void leave_to_streams() noexcept { rest_ = on_streams; }
  /// Waits until this thread owns the communicator, as claim() does, if it does not.
  void take_back();

 private:
  friend HandleTable;
  Claim() noexcept = default;
  Claim(Entry& entry, std::uint32_t rest) noexcept : entry_(&entry), rest_(rest) {}
  Entry* entry_ = nullptr;
  std::uint32_t rest_ = unused;  // the use that it will be in
};

class HandleTable::Pin {
 public:
  /// Null while it is being made, and if that failed.
  Communicator* communicator() const noexcept {
    const bool made = !pin_->making || pin_->making->code() == Code::success;
    return made ? pin_->communicator.get() : nullptr;
  }
  /// Null if it was made before its handle was given out.
  Making* making() const noexcept { return pin_->making.get(); }
  /// What it was made with.
  const Chosen& chosen() const noexcept { return pin_->chosen; }
  /// Throws as claim() if there is none yet.
  Communicator& made() const;
  /// Throws as claim() if it takes no calls.
  Communicator& open() const;

 private:
  friend HandleTable;
  explicit Pin(Entries::Pin pin) noexcept : pin_(std::move(pin)) {}
  Entries::Pin pin_;
};

/// One exchange: it keeps other threads out, and the entry from being destroyed.
inline HandleTable::Claim HandleTable::try_claim(khoroComm_t handle) {
  Entry& entry = entries_.entry(handle);
  if (entry.open.load(std::memory_order_acquire) != Entries::generation_of(handle))
    throw_closed(handle);
  const std::uint32_t use = entry.use.exchange(claimed, std::memory_order_acquire);
  if (use != unused) [[unlikely]] {
    give_up(entry, use);
    return Claim();
  }
  if (entry.open.load(std::memory_order_acquire) == Entries::generation_of(handle))
    return Claim(entry, unused);
  give_up(entry, unused);
  throw_closed(handle);
}

/// The one of this process. It lives until the process ends, for threads that call to the very end.
inline HandleTable& handles() {
  static auto* const table = new HandleTable;
  return *table;
}

}  // namespace khoro
