// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "device/cuda/gpus.h"
#include "device/driver.h"

namespace khoro::cuda_driver {

// Memory of a device is mapped where the device can do that: then a descriptor shares it, and
// devices are allowed to reach it one by one. Elsewhere it is as in older days: a name of 64 bytes
// shares it, and who was once allowed to reach some of a device reaches all.

std::unique_ptr<DeviceMemory> allocate_mapped(Gpus& gpus, Gpu& gpu, std::uint64_t bytes);
std::unique_ptr<DeviceMemory> open_mapped(Gpus& gpus, Gpu& gpu, const MemoryHandle& handle);
std::unique_ptr<DeviceMemory> allocate_named(Gpus& gpus, Gpu& gpu, std::uint64_t bytes);
std::unique_ptr<DeviceMemory> open_named(Gpu& gpu, const MemoryHandle& handle);

/// Zeroed.
std::unique_ptr<DeviceMemory> allocate(Gpus& gpus, Gpu& gpu, std::uint64_t bytes);
std::unique_ptr<PinnedMemory> pin(Gpu& gpu, std::span<std::byte> memory);

/// What an address is, by any device.
AddressFacts facts_of(Gpu& gpu, DeviceAddress address);
/// Throws invalid_usage if kernels of `gpu` do not reach it.
Reached reach(const Gpus& gpus, Gpu& gpu, DeviceAddress address);

}  // namespace khoro::cuda_driver
