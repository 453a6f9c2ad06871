// SPDX-License-Identifier: Apache-2.0
// Memory that other ranks may read and write where it lies.
#include "khoro/memory.h"

#include <cstdint>
#include <memory>

#include "api/guard.h"
#include "api/handle_table.h"
#include "base/arena.h"
#include "base/error.h"
#include "communicator/residents.h"

using khoro::Arena;
using khoro::Code;
using khoro::Error;
using khoro::guard;
using khoro::handles;

khoroResult_t khoroMemAlloc(void** pointer, size_t bytes) {
  return guard([&] {
    khoro::check_out(pointer, "pointer");
    if (bytes == 0) throw Error(Code::invalid_argument, "0 bytes; allocate 1 at least");
    *pointer = Arena::of_process()->allocate(bytes);
  });
}

khoroResult_t khoroMemFree(void* pointer) {
  return guard([&] {
    if (pointer == nullptr) return;
    auto* const data = static_cast<std::byte*>(pointer);
    const std::shared_ptr<Arena> arena = Arena::of_process_if_any();
    const std::uint64_t bytes = arena ? arena->bytes_at(data).value_or(0) : 0;
    if (bytes == 0)
      throw Error(Code::invalid_argument,
                  "nothing was allocated at this address, or it was freed already; free what "
                  "khoroMemAlloc wrote, once");
    bool registered = false;
    khoro::Residents::of_process().visit_all([&](khoro::Communicator& communicator) {
      registered |= communicator.registrations().touch(data, bytes);
    });
    if (registered)
      throw Error(Code::invalid_usage,
                  "the memory is registered; call khoroCommDeregister, or destroy the "
                  "communicator, before it is freed");
    arena->free(data);
  });
}

khoroResult_t khoroCommRegister(khoroComm_t comm, void* buffer, size_t bytes, void** handle) {
  return guard([&] {
    khoro::check_out(handle, "handle");
    const auto pin = handles().pin(comm);
    khoro::Communicator& communicator = pin.open();
    if (communicator.stopped()) communicator.throw_cause();
    if (buffer == nullptr || bytes == 0)
      throw Error(Code::invalid_argument, "the buffer is NULL or empty; register what calls use");
    const std::uint64_t number =
        communicator.registrations().add(static_cast<const std::byte*>(buffer), bytes);
    *handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  });
}

khoroResult_t khoroCommDeregister(khoroComm_t comm, void* handle) {
  return guard([&] {
    const auto pin = handles().pin(comm);
    const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
    if (!pin.made().registrations().remove(number))
      throw Error(Code::invalid_argument,
                  "the handle is no registration of this communicator; deregister each once, with "
                  "the communicator that it was registered with");
  });
}
