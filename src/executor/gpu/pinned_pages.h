// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/driver.h"

namespace khoro::gpu {

/// Zeroed host memory of its own that kernels reach, and that streams copy without the host having
/// to wait. Thread-compatible.
class PinnedPages {
 public:
  /// As many as hold so many bytes. Throws `Error`.
  PinnedPages(Driver& driver, int device, std::uint64_t bytes);
  ~PinnedPages();
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;

  std::span<std::byte> here() const noexcept { return here_; }
  std::byte* in_kernels() const noexcept { return in_kernels_; }

 private:
  std::span<std::byte> here_;
  std::byte* in_kernels_ = nullptr;
  std::unique_ptr<PinnedMemory> pinned_;
};

}  // namespace khoro::gpu
