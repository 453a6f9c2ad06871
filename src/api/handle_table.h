// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "api/handles.h"
#include "communicator/communicator.h"
#include "khoro/khoro.h"

namespace khoro {

/// The handles of communicators. Thread-safe.
class HandleTable {
 public:
  /// Takes the communicator over. Throws out_of_memory when there are too many.
  khoroComm_t add(std::unique_ptr<Communicator> communicator);

  /// The right of one thread to make a call on a communicator; ends with its life.
  class Claim;
  /// The right of any thread to look at a communicator, or abort it; destroying waits for it.
  class Pin;

  /// Throw invalid_argument for a handle that is none. claim() throws invalid_usage if another
  /// thread is in a call on it.
  Claim claim(khoroComm_t handle);
  Pin pin(khoroComm_t handle);

  /// Takes the communicator out; its handle is stale from then on. Throws as claim().
  std::unique_ptr<Communicator> remove(khoroComm_t handle);

 private:
  struct alignas(64) Entry : HandleEntry {
    static constexpr auto null_words =
        "the communicator is NULL; make one with khoroCommInitRank, khoroCommInitWorld or "
        "khoroCommInitAllHost";
    static constexpr auto stale_words =
        "the communicator handle is stale or was never made; use each handle as an init call wrote "
        "it, and not after khoroCommDestroy";
    static constexpr auto limit_words = "65,536 communicators are in use";

    std::atomic<std::uint32_t> busy{0};
    std::unique_ptr<Communicator> communicator;
  };
  using Entries = Handles<khoroComm_t, Entry>;

  void enter(Entry& entry, khoroComm_t handle);
  [[noreturn]] static void throw_busy();

  Entries entries_;
};

class HandleTable::Claim {
 public:
  Claim(Claim&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Claim& operator=(Claim&&) = delete;
  ~Claim() {
    if (entry_) entry_->busy.store(0, std::memory_order_release);
  }
  Communicator* operator->() const noexcept { return entry_->communicator.get(); }
  Communicator& operator*() const noexcept { return *entry_->communicator; }

 private:
  friend HandleTable;
  explicit Claim(Entry& entry) noexcept : entry_(&entry) {}
  Entry* entry_;
};

class HandleTable::Pin {
 public:
  Communicator* operator->() const noexcept { return pin_->communicator.get(); }

 private:
  friend HandleTable;
  explicit Pin(Entries::Pin pin) noexcept : pin_(std::move(pin)) {}
  Entries::Pin pin_;
};

/// One exchange: it keeps other threads out, and the entry from being destroyed.
inline void HandleTable::enter(Entry& entry, khoroComm_t handle) {
  if (entry.generation.load(std::memory_order_acquire) != Entries::generation_of(handle))
    Entries::throw_stale(handle);
  if (entry.busy.exchange(1, std::memory_order_acquire) != 0) throw_busy();
  if (entry.generation.load(std::memory_order_acquire) == Entries::generation_of(handle)) return;
  entry.busy.store(0, std::memory_order_release);
  Entries::throw_stale(handle);
}

inline HandleTable::Claim HandleTable::claim(khoroComm_t handle) {
  Entry& entry = entries_.entry(handle);
  enter(entry, handle);
  return Claim(entry);
}

/// The one of this process. It lives until the process ends, for threads that call to the very end.
inline HandleTable& handles() {
  static auto* const table = new HandleTable;
  return *table;
}

}  // namespace khoro
