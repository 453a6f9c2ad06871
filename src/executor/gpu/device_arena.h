// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/driver.h"
#include "executor/gpu/pinned_pages.h"

namespace khoro::gpu {

/// Memory for the many small things that a rank keeps on a device until its communicator ends: a
/// device's pages are large, so they share them. Thread-compatible.
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
  /// Writes to a piece, and blocks until it is done. Kernels may run that do not look there. Throws
  /// `Error`.
  void write(DeviceAddress to, std::span<const std::byte> from);
  struct Pinned {
    std::span<std::byte> here;
    std::byte* in_kernels = nullptr;
  };
  /// As take(), but zeroed memory of the host, from which streams copy without the host's waiting.
  Pinned take_pinned(std::uint64_t bytes);
  /// What it takes of the device and of the host. Any thread.
  std::uint64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  Driver& driver_;
  int device_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  Piece left_;  // of the last one
  std::vector<std::unique_ptr<PinnedPages>> pinned_;
  std::uint64_t pinned_used_ = 0;  // of the last of them
  std::atomic<std::uint64_t> held_{0};
  std::unique_ptr<DeviceStream> stream_;  // for writes; null: there was none
};

}  // namespace khoro::gpu
