// SPDX-License-Identifier: Apache-2.0
#include "api/handle_table.h"

#include "base/error.h"

namespace khoro {

void HandleTable::throw_busy() {
  throw Error(Code::invalid_usage,
              "another thread is in a call on this communicator; let one thread at a time use it, "
              "or make a communicator for each");
}

khoroComm_t HandleTable::add(std::unique_ptr<Communicator> communicator) {
  Entry& entry = entries_.take();
  entry.communicator = std::move(communicator);
  return entries_.publish(entry);
}

HandleTable::Pin HandleTable::pin(khoroComm_t handle) { return Pin(entries_.pin(handle)); }

std::unique_ptr<Communicator> HandleTable::remove(khoroComm_t handle) {
  Entry& entry = entries_.entry(handle);
  enter(entry, handle);
  entries_.retire(entry, handle);
  std::unique_ptr<Communicator> communicator = std::move(entry.communicator);
  entry.busy.store(0, std::memory_order_release);
  entries_.give_back(entry);
  return communicator;
}

}  // namespace khoro
