// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace khoro {

/// The private memory of another process, which the kernel may let this one read: for the same user
/// and unless the process is not dumpable or a filter forbids it. Thread-safe.
struct PeerMemory {
  int pid = 0;  // as this process sees it; 0: it may not be read
  /// Where the process keeps a word that only it has: what is read with that word is its own, and
  /// not another's that has its number.
  std::uint64_t word_at = 0;
  std::uint64_t word = 0;

  explicit operator bool() const noexcept { return pid != 0; }
  /// Copies, for the price of a system call. False if the kernel does not let it, or if the process
  /// has ended or nothing is there; `to` may have been written to all the same.
  bool read(std::byte* to, std::uint64_t from, std::uint64_t bytes) const noexcept;
};

}  // namespace khoro
