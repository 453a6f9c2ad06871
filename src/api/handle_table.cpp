// SPDX-License-Identifier: Apache-2.0
#include "api/handle_table.h"

#include "base/error.h"
#include "communicator/stream_worker.h"

namespace khoro {

void HandleTable::give_up(Entry& entry, std::uint32_t use) {
  if (use != claimed) return entry.use.store(use, std::memory_order_release);
  throw Error(Code::invalid_usage,
              "another thread is in a call on this communicator; let one thread at a time use it, "
              "or make a communicator for each");
}

HandleTable::Claim HandleTable::claim_with_streams(khoroComm_t handle) {
  Entry& entry = entries_.entry(handle);
  if (entry.generation.load(std::memory_order_acquire) != Entries::generation_of(handle))
    Entries::throw_stale(handle);
  const std::uint32_t use = entry.use.exchange(claimed, std::memory_order_acquire);
  if (use == claimed) give_up(entry, use);
  Claim claim(entry, use);
  if (entry.generation.load(std::memory_order_acquire) != Entries::generation_of(handle))
    Entries::throw_stale(handle);
  return claim;
}

HandleTable::Claim HandleTable::claim(khoroComm_t handle) {
  Claim claim = claim_with_streams(handle);
  if (claim.may_be_on_streams()) claim.take_back();
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
  if (const auto worker = owner()) worker->give_back(*entry_->communicator);
  entry_->communicator->serve(0);
  rest_ = unused;
}

khoroComm_t HandleTable::add(std::unique_ptr<Communicator> communicator) {
  Entry& entry = entries_.take();
  entry.communicator = std::move(communicator);
  return entries_.publish(entry);
}

HandleTable::Pin HandleTable::pin(khoroComm_t handle) { return Pin(entries_.pin(handle)); }

std::unique_ptr<Communicator> HandleTable::remove(khoroComm_t handle) {
  Claim claim = this->claim(handle);  // others may still abort it, should it have to wait
  Entry& entry = *std::exchange(claim.entry_, nullptr);
  entries_.retire(entry, handle);
  std::unique_ptr<Communicator> communicator = std::move(entry.communicator);
  entry.use.store(unused, std::memory_order_release);
  entries_.give_back(entry);
  return communicator;
}

}  // namespace khoro
