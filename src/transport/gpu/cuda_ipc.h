// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "device/driver.h"

namespace khoro {

/// What a rank shows the others of its GPU, in its shared memory. What others have written there is
/// read once and checked.
struct GpuCard {
  static constexpr std::size_t probe_bytes = 256;

  std::array<char, 32> bus_id = {};  // ends with a zero, if it is a good one
  /// The memory that it shares: a number that only this memory has, its size, and how it is opened
  /// where that needs no descriptor.
  std::uint64_t memory = 0;
  std::uint64_t bytes = 0;
  std::array<std::byte, 64> words = {};
  /// Its last page begins with bytes drawn from this.
  std::uint64_t probe = 0;
};

/// Memory of a rank's GPU that ranks on other GPUs reach, and how they reach that of others.
///
/// Ranks of one process share it as it is, and own it together; others open it by handle. What was
/// opened is not trusted before it has been probed: bytes that its owner has written are read, and
/// bytes of one's own written and read again. Thread-compatible.
class CudaIpc {
 public:
  static constexpr std::string_view name = "cuda_ipc";

  /// `bytes` of the device's memory, zeroed, and a page to probe. Throws `Error`.
  CudaIpc(Driver& driver, int device, std::uint64_t bytes);
  ~CudaIpc();
  CudaIpc(const CudaIpc&) = delete;
  CudaIpc& operator=(const CudaIpc&) = delete;

  /// What to show, and the descriptor to show with it: none where the card is enough. The card is
  /// of trivially copied values.
  GpuCard card() const;
  Descriptor descriptor() const;

  /// Has kernels of this rank's device reach the memory of a rank; false, with the reason logged at
  /// `info`, where they cannot, or where the probe fails. `rank` names it, and this rank is `self`.
  bool open(int rank, int self, const GpuCard& card, bool same_process, Descriptor descriptor);
  /// Where kernels of this rank's device find what lies at `offset`, of a rank that was opened; of
  /// this rank itself by `rank` -1.
  std::byte* place(int rank, std::uint64_t offset) const;
  /// The device of a rank of this process that was opened; -1 for all others.
  int device_beside(int rank) const;
  std::uint64_t bytes() const noexcept;

 private:
  bool probe(DeviceMemory& memory, std::uint64_t seed, int self);
  int device_at(std::string_view bus_id) const;

  Driver& driver_;
  int device_;
  std::uint64_t number_;
  std::uint64_t seed_;
  std::shared_ptr<DeviceMemory> own_;
  struct Other {
    std::shared_ptr<DeviceMemory> memory;
    int device_beside = -1;
  };
  std::map<int, Other> others_;
};

}  // namespace khoro
