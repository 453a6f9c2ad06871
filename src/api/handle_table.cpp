// SPDX-License-Identifier: Apache-2.0
#include "api/handle_table.h"

#include "base/error.h"
#include "communicator/stream_worker.h"

namespace khoro {
namespace {

[[noreturn]] void throw_being_made() {
  throw Error(
      Code::invalid_usage,
      "the communicator is still being made; call khoroCommGetAsyncError until it no longer "
      "says khoroInProgress");
}

}  // namespace

void HandleTable::give_up(Entry& entry, std::uint32_t use) {
  if (use != claimed) return entry.use.store(use, std::memory_order_release);
  if (entry.background.load(std::memory_order_acquire) == Background::runs)
    throw Error(
        Code::invalid_usage,
        "a split of this communicator is under way; call khoroCommGetAsyncError until it no "
        "longer says khoroInProgress");
  throw Error(Code::invalid_usage,
              "another thread is in a call on this communicator, or the group holds two splits of "
              "it; let one thread at a time use it, or make a communicator for each");
}

HandleTable::Claim HandleTable::claim_if(Entry& entry, const std::atomic<std::uint32_t>& generation,
                                         khoroComm_t handle) {
  if (generation.load(std::memory_order_acquire) != Entries::generation_of(handle))
    throw_closed(handle);
  const std::uint32_t use = entry.use.exchange(claimed, std::memory_order_acquire);
  if (use == claimed) give_up(entry, use);
  Claim claim(entry, use);
  if (generation.load(std::memory_order_acquire) != Entries::generation_of(handle))
    throw_closed(handle);
  return claim;
}

HandleTable::Claim HandleTable::claim_with_streams(khoroComm_t handle) {
  Entry& entry = entries_.entry(handle);
  return claim_if(entry, entry.open, handle);
}

HandleTable::Claim HandleTable::claim(khoroComm_t handle) {
  Claim claim = claim_with_streams(handle);
  claim.take_back();
  return claim;
}

std::shared_ptr<StreamWorker> HandleTable::Claim::owner() {
  if (!may_be_on_streams()) return nullptr;
  auto worker = StreamWorker::running();
  if (worker && worker->owns(*entry_->communicator)) return worker;
  entry_->communicator->serve(0);
  rest_ = unused;
  return nullptr;
}

void HandleTable::Claim::take_back() {
  const auto worker = owner();
  if (!worker) return;
  worker->give_back(*entry_->communicator);
  entry_->communicator->serve(0);
  rest_ = unused;
}

khoroComm_t HandleTable::add(std::unique_ptr<Communicator> communicator, const Chosen& chosen) {
  if (!communicator) return nullptr;
  Entry& entry = entries_.take();
  entry.chosen = chosen;
  entry.communicator = std::move(communicator);
  const khoroComm_t handle = entries_.publish(entry);
  entry.open.store(Entries::generation_of(handle), std::memory_order_release);
  return handle;
}

khoroComm_t HandleTable::add(Make make, const Chosen& chosen) {
  auto making = std::make_unique<Making>();
  Entry& entry = entries_.take();
  entry.chosen = chosen;
  entry.making = std::move(making);
  const khoroComm_t handle = entries_.publish(entry);
  const auto publish = [&entry, handle](std::unique_ptr<Communicator> communicator) {
    entry.communicator = std::move(communicator);
    entry.open.store(Entries::generation_of(handle), std::memory_order_release);
  };
  try {
    entry.making->start(std::move(make), publish);
  } catch (...) {
    entries_.retire(entry, handle);
    entry.making.reset();
    entries_.give_back(entry);
    throw;
  }
  return handle;
}

void HandleTable::take_part(khoroComm_t handle, Make make) {
  Entry& entry = entries_.entry(handle);
  entry.taking_part = std::make_unique<Making>();  // the one before has ended its claim
  entry.taking_part->start(std::move(make), [](std::unique_ptr<Communicator>) {});
}

bool HandleTable::in_background(const Pin& pin) {
  const std::atomic<Background>& background = pin.pin_->background;
  if (background.load(std::memory_order_acquire) == Background::never) return false;
  const std::lock_guard lock(mutex_);
  return background.load(std::memory_order_relaxed) == Background::runs;
}

void HandleTable::end_in_background(Claim claim) {
  const std::lock_guard lock(mutex_);  // who sees that it has ended sees that it is not claimed
  claim.entry_->background.store(Background::ended, std::memory_order_relaxed);
  const Claim ended = std::move(claim);
}

HandleTable::Pin HandleTable::pin(khoroComm_t handle) { return Pin(entries_.pin(handle)); }

Communicator& HandleTable::Pin::made() const {
  if (Communicator* made = communicator()) return *made;
  if (making()->failed()) throw Error(making()->code(), making()->words());
  throw_being_made();
}

Communicator& HandleTable::Pin::open() const {
  Communicator& communicator = made();
  if (pin_->open.load(std::memory_order_acquire) != closed) return communicator;
  if (communicator.stopped()) communicator.throw_cause();
  throw Error(Code::invalid_usage,
              "the communicator was finalized and takes no more calls; destroy it");
}

void HandleTable::throw_closed(khoroComm_t handle) {
  pin(handle).open();
  // It was opened in between: as if it had been asked for too early.
  throw_being_made();
}

std::unique_ptr<Communicator> HandleTable::remove(khoroComm_t handle) {
  Entry& closing = entries_.entry(handle);
  Claim claim = claim_if(closing, closing.generation, handle);
  claim.take_back();  // others may still abort it while this waits
  Entry& entry = *std::exchange(claim.entry_, nullptr);
  entries_.retire(entry, handle);
  entry.making.reset();  // which may still publish
  entry.taking_part.reset();
  entry.background.store(Background::never, std::memory_order_relaxed);
  entry.open.store(closed, std::memory_order_release);
  std::unique_ptr<Communicator> communicator = std::move(entry.communicator);
  entry.use.store(unused, std::memory_order_release);
  entries_.give_back(entry);
  return communicator;
}

}  // namespace khoro
