// SPDX-License-Identifier: Apache-2.0
#include "api/handle_table.h"

#include <sched.h>

#include "base/error.h"

namespace khoro {

void HandleTable::throw_stale(khoroComm_t handle) {
  if (!handle)
    throw Error(Code::invalid_argument,
                "the communicator is NULL; make one with khoroCommInitRank, khoroCommInitWorld or "
                "khoroCommInitAllHost");
  throw Error(Code::invalid_argument,
              "the communicator handle is stale or was never made; use each handle as an init call "
              "wrote it, and not after khoroCommDestroy");
}

void HandleTable::throw_busy() {
  throw Error(Code::invalid_usage,
              "another thread is in a call on this communicator; let one thread at a time use it, "
              "or make a communicator for each");
}

HandleTable::Entry& HandleTable::free_entry() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (made_ == blocks) throw Error(Code::out_of_memory, "65,536 communicators are in use");
    free_.reserve(block);
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

khoroComm_t HandleTable::add(std::unique_ptr<Communicator> communicator) {
  Entry& entry = free_entry();
  entry.communicator = std::move(communicator);
  const std::uint64_t generation = entry.generation.load(std::memory_order_relaxed) + 1u;
  entry.generation.store(static_cast<std::uint32_t>(generation), std::memory_order_release);
  return reinterpret_cast<khoroComm_t>(generation << 32 | entry.index);
}

HandleTable::Pin HandleTable::pin(khoroComm_t handle) {
  Entry& entry = this->entry(handle);
  // Sequentially consistent with remove(): either it sees the pin, or this sees the generation.
  entry.pins.fetch_add(1, std::memory_order_seq_cst);
  Pin pin(entry);
  if (entry.generation.load(std::memory_order_seq_cst) != generation_of(handle))
    throw_stale(handle);
  return pin;
}

std::unique_ptr<Communicator> HandleTable::remove(khoroComm_t handle) {
  Entry& entry = this->entry(handle);
  enter(entry, handle);
  entry.generation.fetch_add(1, std::memory_order_seq_cst);
  while (entry.pins.load(std::memory_order_seq_cst) != 0) ::sched_yield();  // they never block
  std::unique_ptr<Communicator> communicator = std::move(entry.communicator);
  entry.busy.store(0, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  free_.push_back(&entry);
  return communicator;
}

}  // namespace khoro
