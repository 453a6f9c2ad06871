// SPDX-License-Identifier: Apache-2.0
// GPUs as callers use them beside communicators.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "api/guard.h"
#include "api/handle_table.h"
#include "api/stream_handles.h"
#include "base/error.h"
#include "communicator/communicator.h"
#include "communicator/gpus.h"
#include "khoro/device.h"

using khoro::Code;
using khoro::DeviceAddress;
using khoro::Error;
using khoro::guard;

namespace {

std::shared_ptr<khoro::Driver> gpus(khoroMemory_t memory) {
  switch (memory) {
    case khoroMemoryCuda:
      return khoro::gpus_of_process("cuda");
    case khoroMemoryVirtual:
      return khoro::gpus_of_process("virtual");
    case khoroMemoryHost:
      break;
  }
  throw Error(Code::invalid_argument,
              fmt::format("memory {} is of no GPU; use khoroMemoryCuda or khoroMemoryVirtual",
                          static_cast<unsigned>(memory)));
}

DeviceAddress address_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

/// Memory that callers own, by address.
struct Allocations {
  struct Held {
    std::shared_ptr<khoro::Driver> driver;
    std::unique_ptr<khoro::DeviceMemory> memory;  // ends before its driver
  };
  std::mutex mutex;
  std::map<DeviceAddress, Held> held;
};
Allocations& allocations() {
  static auto* const allocations = new Allocations;
  return *allocations;
}

khoro::GpuStream& gpu_stream(const khoro::StreamHandle& handle) {
  if (handle.gpu) return *handle.gpu;
  throw Error(Code::invalid_usage,
              "the stream is one of the host; make one with khoroDeviceStreamCreate");
}

template <class Make>
khoroStream_t add_stream(khoroMemory_t memory, int device, Make make) {
  const auto driver = gpus(memory);
  auto stream = std::make_shared<khoro::GpuStream>();
  stream->driver = driver;
  stream->device = device;
  stream->stream = make(*driver);
  return khoro::add(khoro::StreamHandle{nullptr, nullptr, std::move(stream)});
}

}  // namespace

khoroResult_t khoroDeviceCount(khoroMemory_t memory, int* count) {
  return guard([&] {
    khoro::check_out(count, "count");
    *count = gpus(memory)->devices();
  });
}

khoroResult_t khoroDeviceName(char* text, size_t size, khoroMemory_t memory, int device) {
  return guard([&] {
    khoro::check_out(text, "text");
    if (size == 0) throw Error(Code::invalid_argument, "the text has no room");
    const auto driver = gpus(memory);
    if (device < 0 || device >= driver->devices())
      throw Error(Code::invalid_argument,
                  fmt::format("there is no GPU {}; there are {}", device, driver->devices()));
    const khoro::DeviceFacts facts = driver->facts(device);
    const std::string name = fmt::format("{} at {}", facts.name, facts.bus_id);
    text[name.copy(text, size - 1)] = 0;
  });
}

khoroResult_t khoroCommDevice(khoroComm_t comm, khoroMemory_t* memory, int* device) {
  return guard([&] {
    const auto pin = khoro::handles().pin(comm);
    const khoro::GpuSide* const gpu = pin.made().gpu();
    const bool real = gpu && gpu->driver().name() == "cuda";
    if (memory) *memory = !gpu ? khoroMemoryHost : real ? khoroMemoryCuda : khoroMemoryVirtual;
    if (device) *device = gpu ? gpu->device() : -1;
  });
}

khoroResult_t khoroDeviceAlloc(void** pointer, size_t bytes, khoroMemory_t memory, int device) {
  return guard([&] {
    khoro::check_out(pointer, "pointer");
    if (bytes == 0) throw Error(Code::invalid_argument, "0 bytes; allocate 1 at least");
    const auto driver = gpus(memory);
    Allocations::Held held{driver, driver->allocate(device, bytes)};
    held.memory->allow_all();  // so that ranks which are threads may use each other's buffers
    const DeviceAddress address = held.memory->address();
    const std::lock_guard lock(allocations().mutex);
    allocations().held.emplace(address, std::move(held));
    *pointer = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  });
}

khoroResult_t khoroDeviceFree(void* pointer) {
  return guard([&] {
    if (pointer == nullptr) return;
    khoro::Communicator::settle_gpus();
    Allocations::Held freed;  // without the lock
    const std::lock_guard lock(allocations().mutex);
    const auto found = allocations().held.find(address_of(pointer));
    if (found == allocations().held.end())
      throw Error(Code::invalid_argument,
                  "nothing was allocated at this address, or it was freed already; free what "
                  "khoroDeviceAlloc wrote, once");
    freed = std::move(found->second);
    allocations().held.erase(found);
  });
}

khoroResult_t khoroDeviceStreamCreate(khoroStream_t* stream, khoroMemory_t memory, int device) {
  return guard([&] {
    khoro::check_out(stream, "stream");
    *stream = add_stream(memory, device,
                         [&](khoro::Driver& driver) { return driver.make_stream(device); });
  });
}

khoroResult_t khoroDeviceStreamBorrow(khoroStream_t* stream, khoroMemory_t memory, int device,
                                      void* native) {
  return guard([&] {
    khoro::check_out(stream, "stream");
    *stream = add_stream(memory, device, [&](khoro::Driver& driver) {
      return driver.borrow_stream(device, native);
    });
  });
}

khoroResult_t khoroDeviceStreamNative(khoroStream_t stream, void** native) {
  return guard([&] {
    khoro::check_out(native, "native");
    *native = gpu_stream(khoro::find_any(stream)).stream->native();
  });
}

khoroResult_t khoroDeviceCopy(void* to, const void* from, size_t bytes, khoroStream_t stream) {
  return guard([&] {
    const khoro::StreamHandle found = khoro::find_any(stream);
    khoro::DeviceStream& on = *gpu_stream(found).stream;
    if (bytes == 0) return;
    if (!to || !from) throw Error(Code::invalid_argument, "an end of the copy is NULL");
    on.copy(address_of(to), address_of(from), bytes);
  });
}
