// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace khoro {

/// Makes anonymous shared memory of a fixed size, zeroed and sparse: pages cost memory once they
/// are touched. It has no name in the file system and is sealed against any change of size, so a
/// peer that was handed the descriptor can never cause a SIGBUS by cutting it. `label` is seen in
/// /proc only. Throws `Error`.
Descriptor make_shared_memory(const std::string& label, std::uint64_t bytes);

/// Refuses memory that could still shrink, that is shorter than `least_bytes`, or that is no
/// ordinary memfd: throws `Error` that begins with `what`, a name of the memory for people.
void check_shared_memory(int descriptor, std::uint64_t least_bytes, const std::string& what);

/// How many bytes of mapped shared memory have pages behind them, whoever touched them; `memory`
/// begins at a page. All of them where the system does not say.
std::uint64_t resident_bytes(std::span<const std::byte> memory) noexcept;

/// Shared memory as this process sees it, readable and writable. Copies share one mapping, and so
/// does every Mapping of the same memory in the process: ranks that are threads of one process see
/// a peer's memory at the very address where the peer sees it, and tools that follow accesses by
/// address, such as ThreadSanitizer, see one memory and not two.
class Mapping {
 public:
  Mapping() = default;

  /// Maps all of what `descriptor` refers to, which need not stay open, once
  /// check_shared_memory() has passed it. Throws `Error`.
  static Mapping open(int descriptor, std::uint64_t least_bytes, const std::string& what);

  explicit operator bool() const noexcept { return region_ != nullptr; }
  std::span<std::byte> bytes() const noexcept;

  struct Region;

 private:
  // Owned by all the Mappings of one memory together; a table of the process knows it, weakly.
  std::shared_ptr<const Region> region_;
};

}  // namespace khoro
