// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "device/driver.h"

namespace khoro {

/// A device's place in tables of `count`. Throws invalid_argument if there is no such device.
inline std::size_t place_of_device(int device, std::size_t count) {
  if (device < 0 || static_cast<std::size_t>(device) >= count)
    throw Error(Code::invalid_argument,
                fmt::format("there is no GPU {}: there are {}", device, count));
  return static_cast<std::size_t>(device);
}

/// Throws invalid_argument for 0 bytes, and out_of_memory for what the device could never have.
inline void check_allocation(int device, std::uint64_t bytes, std::uint64_t memory_bytes) {
  if (bytes == 0) throw Error(Code::invalid_argument, "an allocation of 0 bytes on a GPU");
  if (bytes > memory_bytes)
    throw Error(Code::out_of_memory, fmt::format("GPU {} has {} bytes of memory in all, not {}",
                                                 device, memory_bytes, bytes));
}

inline std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
/// Bytes of the pages that hold so many.
inline std::uint64_t to_pages(std::uint64_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

/// What Driver::reach() says of an address of nothing.
inline Error unreachable(DeviceAddress address) {
  return {Code::invalid_usage,
          fmt::format("no memory that kernels reach at {:#x}: it is neither of a device nor pinned",
                      address)};
}

/// Throws invalid_argument unless it is whole pages.
inline void check_pinnable(std::span<const std::byte> memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  if (memory.empty() || address % page_bytes() != 0 || memory.size() % page_bytes() != 0)
    throw Error(Code::invalid_argument, "memory to pin is not whole pages");
}

}  // namespace khoro
