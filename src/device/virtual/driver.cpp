// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "device/virtual/event.h"
#include "device/virtual/machine.h"
#include "device/virtual/memory.h"
#include "device/virtual/multiprocessors.h"
#include "device/virtual/shortage.h"
#include "device/virtual/stream.h"

namespace khoro {
namespace {

using namespace virtual_gpu;

VirtualMachine checked(VirtualMachine machine) {
  const std::size_t count = machine.devices.size();
  const auto refuse = [](const char* what) {
    throw Error(Code::invalid_argument, fmt::format("virtual GPUs: {}", what));
  };
  if (machine.reach.size() != count) refuse("their reach is not a row for each of them");
  for (std::size_t device = 0; device < count; ++device) {
    if (machine.reach[device].size() != count) refuse("a row of their reach is not of their count");
    machine.reach[device][device] = true;
    for (std::size_t other = 0; other < device; ++other)
      if (machine.devices[other].bus_id == machine.devices[device].bus_id)
        refuse("two have the same bus id");
  }
  if (machine.block_threads < 1 || machine.resident_blocks < 1) refuse("they can run no block");
  return machine;
}

class VirtualDriver final : public Driver {
 public:
  explicit VirtualDriver(VirtualMachine machine)
      : machine_(checked(std::move(machine))),
        shortage_(machine_.failure),
        memories_(machine_),
        streams_(machine_.devices.size(), Delays(machine_.seed)) {
    const Delays delays(machine_.seed);
    for (int device = 0; device < devices(); ++device)
      multiprocessors_.emplace_back(device, machine_, shortage_,
                                    delays.of(0x6b65726e + static_cast<std::uint64_t>(device)));
  }

  std::string_view name() const noexcept override { return "virtual"; }
  int devices() const noexcept override { return static_cast<int>(machine_.devices.size()); }
  DeviceFacts facts(int device) const override { return machine_.devices[at(device)]; }
  bool reaches(int device, int peer) const override { return machine_.reach[at(device)][at(peer)]; }
  AddressFacts facts(DeviceAddress address) const override { return memories_.facts(address); }
  Reached reach(int device, DeviceAddress address) const override {
    at(device);
    return memories_.reach(device, address);
  }

  std::unique_ptr<DeviceMemory> allocate(int device, std::uint64_t bytes) override {
    at(device);
    shortage_.take(device, "an allocation");
    return memories_.allocate(device, bytes);
  }
  std::unique_ptr<DeviceMemory> open(int device, const MemoryHandle& handle) override {
    at(device);
    shortage_.take(device, "memory of another process");
    return memories_.open(device, handle);
  }
  std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory) override {
    shortage_.take(-1, "pinned pages");
    return memories_.pin(memory);
  }

  std::unique_ptr<DeviceStream> make_stream(int device) override {
    Multiprocessors& multiprocessors = multiprocessors_[at(device)];
    shortage_.take(device, "a stream");
    return std::make_unique<OwnStream>(streams_, device, memories_, multiprocessors);
  }
  std::unique_ptr<DeviceStream> borrow_stream(int device, void* native) override {
    Multiprocessors& multiprocessors = multiprocessors_[at(device)];
    return std::make_unique<Stream>(memories_, multiprocessors, streams_.find(device, native));
  }
  std::unique_ptr<DeviceEvent> make_event(int device) override {
    at(device);
    shortage_.take(device, "an event");
    return std::make_unique<Event>();
  }

  const Kernel& kernel(int device, const KernelImage& image, std::string_view name) override {
    at(device);
    const auto found =
        std::find_if(image.functions.begin(), image.functions.end(),
                     [&](const KernelImage::Entry& entry) { return entry.name == name; });
    if (found == image.functions.end())
      throw Error(Code::invalid_argument, fmt::format("virtual GPUs have no kernel '{}'", name));
    const std::lock_guard lock(mutex_);
    if (!kernels_.contains({device, found->function})) shortage_.take(device, "a kernel");
    return kernels_
        .try_emplace({device, found->function}, device, found->function, machine_.resident_blocks)
        .first->second;
  }

 private:
  std::size_t at(int device) const { return memories_.place_of(device); }

  const VirtualMachine machine_;
  Shortage shortage_;
  Memories memories_;
  std::deque<Multiprocessors> multiprocessors_;  // by device
  std::mutex mutex_;
  std::map<std::pair<int, KernelImage::Function>, FunctionKernel> kernels_;
  Streams streams_;  // ends before what its tasks use
};

}  // namespace

std::unique_ptr<Driver> make_virtual_driver(VirtualMachine machine) {
  return std::make_unique<VirtualDriver>(std::move(machine));
}

}  // namespace khoro
