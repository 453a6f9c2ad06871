// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/driver.h"
#include "device/virtual/delays.h"
#include "device/virtual/machine.h"
#include "device/virtual/shortage.h"

namespace khoro::virtual_gpu {

/// The function of a kernel image, for one device.
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(int device, KernelImage::Function function, int resident_blocks) noexcept
      : device_(device), function_(function), resident_blocks_(resident_blocks) {}
  int resident_blocks(int threads, std::uint32_t shared_bytes) const override;

  int device() const noexcept { return device_; }
  KernelImage::Function function() const noexcept { return function_; }

 private:
  int device_;
  KernelImage::Function function_;
  int resident_blocks_;
};

struct Grid;
struct BlockThread;

/// The threads of a device that run blocks of its kernels: started when a launch needs more of
/// them, and kept. Blocks of earlier launches are placed before those of later ones; each stays
/// where it is until it has ended. Thread-safe.
class Multiprocessors {
 public:
  /// `shortage` is borrowed.
  Multiprocessors(int device, const VirtualMachine& machine, Shortage& shortage, Delays delays);
  /// When all launches have ended.
  ~Multiprocessors();
  Multiprocessors(const Multiprocessors&) = delete;
  Multiprocessors& operator=(const Multiprocessors&) = delete;

  /// Has all ready that running it takes, so that only this throws.
  std::shared_ptr<Grid> prepare(const Launch& launch);
  /// Blocks until all its blocks have ended.
  void run(Grid& grid) noexcept;

 private:
  friend Grid;
  /// Has that many more threads for launches, and says the number of this one. Throws `Error`.
  std::uint64_t promise(std::size_t threads);
  void take_back(std::size_t threads) noexcept;
  void place(Grid& grid) noexcept;
  void work() noexcept;
  void end_block(Grid& grid, std::size_t room) noexcept;

  const int device_;
  const std::size_t resident_blocks_;
  const unsigned block_threads_;
  Shortage& shortage_;
  const Delays delays_;
  std::mutex turn_;  // of the launch whose blocks are placed
  std::mutex mutex_;
  std::condition_variable work_;      // for threads
  std::condition_variable progress_;  // for launches
  std::uint64_t launches_ = 0;
  std::size_t promised_ = 0;  // threads that launches under way may need
  std::size_t resident_ = 0;
  bool ending_ = false;
  std::vector<BlockThread> waiting_;
  std::vector<std::thread> threads_;
};

}  // namespace khoro::virtual_gpu
