// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace khoro {

/// The memory that a caller has registered with one communicator. Thread-safe.
class Registrations {
 public:
  /// Returns its number, which no other registration of the process has. Throws invalid_argument if
  /// not all of it is mapped.
  std::uint64_t add(const std::byte* data, std::uint64_t bytes);
  /// False if there is none of that number.
  bool remove(std::uint64_t number);
  /// Whether one of them has a byte of this.
  bool touch(const std::byte* data, std::uint64_t bytes) const;

 private:
  struct Range {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Range> all_;
};

}  // namespace khoro
