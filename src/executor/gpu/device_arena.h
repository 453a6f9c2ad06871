// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/driver.h"

namespace khoro::gpu {

/// Memory of a device for the many small things that a rank keeps there until its communicator
/// ends: a device's pages are large, so they share them. Thread-compatible.
class DeviceArena {
 public:
  DeviceArena(Driver& driver, int device) noexcept : driver_(driver), device_(device) {}
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  struct Piece {
    DeviceAddress address = 0;  // for streams
    std::byte* in_kernels = nullptr;
    std::uint64_t bytes = 0;
  };
  /// Of that many bytes at a multiple of 128, until the arena ends. Throws `Error`.
  Piece take(std::uint64_t bytes);
  /// What it takes of the device. Any thread.
  std::uint64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  Driver& driver_;
  int device_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  Piece left_;  // of the last one
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace khoro::gpu
