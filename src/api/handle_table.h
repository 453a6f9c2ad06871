// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "communicator/communicator.h"
#include "khoro/khoro.h"

namespace khoro {

/// Gives communicators to C callers as numbers: an index and the generation of its entry. A handle
/// is never dereferenced, so a stale or invented one is an error and not a crash. Thread-safe.
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
  struct alignas(64) Entry {
    std::atomic<std::uint32_t> generation{1};
    std::atomic<std::uint32_t> busy{0};
    std::atomic<std::uint32_t> pins{0};
    std::uint32_t index = 0;
    std::unique_ptr<Communicator> communicator;
  };
  static constexpr std::size_t block = 64;
  static constexpr std::size_t blocks = 1'024;
  using Block = std::array<Entry, block>;

  static std::uint32_t generation_of(khoroComm_t handle) noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) >> 32);
  }
  /// Throws invalid_argument. The entry exists, but may be of another generation.
  Entry& entry(khoroComm_t handle);
  void enter(Entry& entry, khoroComm_t handle);
  [[noreturn]] static void throw_stale(khoroComm_t handle);
  [[noreturn]] static void throw_busy();
  Entry& free_entry();

  // Entries live as long as the process: a handle may be looked up at any time.
  std::array<std::atomic<Block*>, blocks> blocks_{};
  std::mutex mutex_;
  std::size_t made_ = 0;
  std::vector<Entry*> free_;
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
  Pin(Pin&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Pin& operator=(Pin&&) = delete;
  ~Pin() {
    if (entry_) entry_->pins.fetch_sub(1, std::memory_order_release);
  }
  Communicator* operator->() const noexcept { return entry_->communicator.get(); }

 private:
  friend HandleTable;
  explicit Pin(Entry& entry) noexcept : entry_(&entry) {}
  Entry* entry_;
};

inline HandleTable::Entry& HandleTable::entry(khoroComm_t handle) {
  const std::uint64_t index = reinterpret_cast<std::uintptr_t>(handle) & 0xffffffff;
  // An odd generation is that of a free entry.
  if (index < block * blocks && generation_of(handle) % 2 == 0)
    if (Block* found = blocks_[index / block].load(std::memory_order_acquire))
      return (*found)[index % block];
  throw_stale(handle);
}

/// One exchange: it keeps other threads out, and the entry from being destroyed.
inline void HandleTable::enter(Entry& entry, khoroComm_t handle) {
  if (entry.generation.load(std::memory_order_acquire) != generation_of(handle))
    throw_stale(handle);
  if (entry.busy.exchange(1, std::memory_order_acquire) != 0) throw_busy();
  if (entry.generation.load(std::memory_order_acquire) == generation_of(handle)) return;
  entry.busy.store(0, std::memory_order_release);
  throw_stale(handle);
}

inline HandleTable::Claim HandleTable::claim(khoroComm_t handle) {
  Entry& entry = this->entry(handle);
  enter(entry, handle);
  return Claim(entry);
}

/// The one of this process. It lives until the process ends, for threads that call to the very end.
inline HandleTable& handles() {
  static auto* const table = new HandleTable;
  return *table;
}

}  // namespace khoro
