// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "device/driver.h"

namespace khoro {

/// Memory of the host, through which kernels pass what no link carries: that of each rank as this
/// process has it mapped. It is pinned piece by piece, when a channel needs it. Thread-compatible.
class Staging {
 public:
  static constexpr std::string_view name = "host";

  /// `memory` of all ranks, borrowed; this one is `self`.
  Staging(Driver& driver, int device, int self, std::vector<std::span<std::byte>> memory)
      : driver_(driver), device_(device), self_(self), memory_(std::move(memory)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Where kernels of this rank's device find so many bytes at `offset` of a rank's memory, whole
  /// pages both. Throws `Error`.
  std::byte* place(int rank, std::uint64_t offset, std::uint64_t bytes);
  /// Of this rank's memory, pinned.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  Driver& driver_;
  int device_;
  int self_;
  std::vector<std::span<std::byte>> memory_;
  std::vector<std::shared_ptr<PinnedMemory>> pinned_;
  std::uint64_t bytes_ = 0;
};

}  // namespace khoro
