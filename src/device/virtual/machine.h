// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/driver.h"

namespace khoro {

/// Virtual GPUs, as a machine might have them.
struct VirtualMachine {
  /// What allocations take counts against memory_bytes of their device.
  std::vector<DeviceFacts> devices;
  /// [device][peer]: kernels of the one reach memory of the other. A device reaches its own.
  std::vector<std::vector<bool>> reach;
  /// Not 0: threads of blocks, and streams, are delayed at random, by a choice that this fixes.
  std::uint64_t seed = 0;
  /// Not 0: the so many-th thing that takes memory fails with out_of_memory. Those are memory
  /// itself, that of another process, pinned pages, streams, events, kernels and launches.
  std::uint64_t failure = 0;
  /// Host threads that a block gets at most, whatever its launch asks for.
  unsigned block_threads = 2;
  /// Blocks that run at once on a device; a larger launch runs in waves.
  int resident_blocks = 32;
};

/// A driver of these GPUs. Their memory is host memory, at addresses that trap when host code
/// touches them, and can be shared with other processes; their kernels and streams are threads of
/// this process. Throws invalid_argument where the machine contradicts itself.
///
/// A stream that was made here finishes what it was given before it is destroyed, so it hangs if
/// that cannot end. Kernels must not throw.
std::unique_ptr<Driver> make_virtual_driver(VirtualMachine machine);

}  // namespace khoro
