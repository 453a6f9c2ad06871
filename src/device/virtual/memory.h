// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/driver.h"
#include "device/virtual/machine.h"

namespace khoro::virtual_gpu {

/// What is at addresses of virtual devices and of pinned memory. Thread-safe.
class Memories {
 public:
  /// `machine` must outlive it, and it all memory.
  explicit Memories(const VirtualMachine& machine);

  /// The device's place in tables. Throws invalid_argument if there is no such device.
  std::size_t place_of(int device) const;

  std::unique_ptr<DeviceMemory> allocate(int device, std::uint64_t bytes);
  std::unique_ptr<DeviceMemory> open(int device, const MemoryHandle& handle);
  std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory);

  AddressFacts facts(DeviceAddress address) const;
  Reached reach(int device, DeviceAddress address) const;
  /// Where copies find `bytes` at `address`, be it of a device or of the host. Throws
  /// invalid_argument where they go beyond what was allocated.
  std::byte* data(DeviceAddress address, std::uint64_t bytes) const;

  // For the memory itself.
  struct Region {
    AddressFacts facts;
    std::byte* data;          // as kernels see it
    std::vector<bool> users;  // the devices whose kernels reach it
  };
  const VirtualMachine& machine() const noexcept { return machine_; }
  /// Throws invalid_usage if it overlaps what is there.
  void add(Region region);
  void remove(DeviceAddress begin) noexcept;
  void allow(DeviceAddress begin, int device);
  /// Counts pages of a device. Throws out_of_memory.
  void take(int device, std::uint64_t bytes);
  void give_back(int device, std::uint64_t bytes) noexcept;

 private:
  const Region* find(DeviceAddress address) const;  // with the lock held

  const VirtualMachine& machine_;
  mutable std::mutex mutex_;
  std::map<DeviceAddress, Region> regions_;  // by their first address
  std::vector<std::uint64_t> taken_;         // bytes, by device
};

}  // namespace khoro::virtual_gpu
