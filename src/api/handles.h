// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"

namespace khoro {

/// What every entry of a table of handles begins with.
struct HandleEntry {
  std::atomic<std::uint32_t> generation{1};  // odd: a free entry
  std::atomic<std::uint32_t> pins{0};
  std::uint32_t index = 0;
};

/// Gives things of one kind to C callers as numbers: an index and the generation of its entry. A
/// handle is never dereferenced, so a stale or invented one is an error and not a crash. `Entry` is
/// a HandleEntry with what a handle stands for, and has a number of its kind, by which a handle of
/// another kind is an error too, `kind`, and the words of errors: `null_words`, `stale_words`,
/// `limit_words`. Thread-safe.
template <class Handle, class Entry>
class Handles {
 public:
  /// Holds what a handle stands for where it is, for a moment: who takes it out waits meanwhile.
  class Pin {
   public:
    Pin(Pin&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (entry_) entry_->pins.fetch_sub(1, std::memory_order_release);
    }
    Entry& operator*() const noexcept { return *entry_; }
    Entry* operator->() const noexcept { return entry_; }

   private:
    friend Handles;
    explicit Pin(Entry& entry) noexcept : entry_(&entry) {}
    Entry* entry_;
  };

  /// Throws invalid_argument for a handle that is none.
  Pin pin(Handle handle) {
    Entry& entry = this->entry(handle);
    // Sequentially consistent with retire(): either it sees the pin, or this sees the generation.
    entry.pins.fetch_add(1, std::memory_order_seq_cst);
    Pin pin(entry);
    if (entry.generation.load(std::memory_order_seq_cst) != generation_of(handle))
      throw_stale(handle);
    return pin;
  }

  static std::uint32_t generation_of(Handle handle) noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) >> 32);
  }
  /// Throws invalid_argument. The entry exists, but may be of another generation.
  Entry& entry(Handle handle) {
    const std::uint64_t index = (reinterpret_cast<std::uintptr_t>(handle) & 0xffffffff) - kind;
    // An odd generation is that of a free entry.
    if (index < block * blocks && generation_of(handle) % 2 == 0)
      if (Block* found = blocks_[index / block].load(std::memory_order_acquire))
        return (*found)[index % block];
    throw_stale(handle);
  }
  [[noreturn]] static void throw_stale(Handle handle) {
    throw Error(Code::invalid_argument, handle ? Entry::stale_words : Entry::null_words);
  }

  // The life of an entry: taken, filled, published, retired, emptied, given back.

  /// A free entry. Throws out_of_memory when there are too many.
  Entry& take();
  /// Its handle, good from now on.
  Handle publish(Entry& entry) noexcept {
    const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1u;
    entry.generation.store(generation, std::memory_order_release);
    return reinterpret_cast<Handle>(std::uint64_t{generation} << 32 | kind | entry.index);
  }
  /// Makes a handle stale, and waits until nobody has it pinned. Throws invalid_argument if it is
  /// stale already: one caller retires it.
  void retire(Entry& entry, Handle handle) {
    std::uint32_t generation = generation_of(handle);
    if (!entry.generation.compare_exchange_strong(generation, generation + 1,
                                                  std::memory_order_seq_cst))
      throw_stale(handle);
    while (entry.pins.load(std::memory_order_seq_cst) != 0) ::sched_yield();  // they never block
  }
  void give_back(Entry& entry) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&entry);
  }

  // The life of one whose entry has nothing beside what it stands for, `held`.

  template <class Held>
  Handle add(Held held) {
    Entry& entry = take();
    entry.held = std::move(held);
    return publish(entry);
  }
  /// What it stood for. Throws as retire().
  auto remove(Handle handle) {
    Entry& entry = this->entry(handle);
    retire(entry, handle);
    auto held = std::exchange(entry.held, {});
    give_back(entry);
    return held;
  }

 private:
  static constexpr std::uint64_t kind = std::uint64_t{Entry::kind} << 24;  // above any index
  static constexpr std::size_t block = 64;
  static constexpr std::size_t blocks = 1'024;
  using Block = std::array<Entry, block>;

  // Entries live as long as the process: a handle may be looked up at any time.
  std::array<std::atomic<Block*>, blocks> blocks_{};
  std::mutex mutex_;
  std::size_t made_ = 0;
  std::vector<Entry*> free_;
};

template <class Handle, class Entry>
Entry& Handles<Handle, Entry>::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (made_ == blocks) throw Error(Code::out_of_memory, Entry::limit_words);
    // Room for all, so that giving back never fails.
    free_.reserve((made_ + 1) * block);
    auto fresh = std::make_unique<Block>();
    for (std::size_t i = 0; i < block; ++i) {
      Entry& entry = (*fresh)[block - 1 - i];
      entry.index = static_cast<std::uint32_t>(made_ * block + block - 1 - i);
      free_.push_back(&entry);
    }
    blocks_[made_++].store(fresh.release(), std::memory_order_release);
  }
  Entry& entry = *free_.back();
  free_.pop_back();
  return entry;
}

}  // namespace khoro
