// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace khoro {

/// When a message is lent to its receiver rather than copied through a slot, where it lies and the
/// channel allow it. A rank's own affair. What a step has just written is still in the caches of
/// its processor: a copy of it costs little, and spares it having the lines back for the next call.
struct LendingRule {
  /// Bytes of a message: below, a slot costs less than to tell each other of what is lent.
  std::uint64_t least = 4096;
  /// Bytes of the larger buffer of a call, for what a step has just written and the receiver reads
  /// in place; so many times as much if the call is in place.
  std::uint64_t least_of_results = 256 << 10;
  std::uint64_t in_place = 8;
  /// Bytes of a message, and of the larger buffer of its call, for what the kernel copies for the
  /// receiver: below, the system call costs more than a second copy; above, its copy is the slower.
  std::uint64_t least_fetched = 32 << 10;
  std::uint64_t most_of_fetched = 1 << 20;

  /// Whatever has so many bytes at least.
  static constexpr LendingRule always(std::uint64_t least) noexcept {
    return {least, 0, 1, least, UINT64_MAX};
  }
};

/// A line of the rule for people: the first that fits decides.
struct LendingLine {
  std::string memory;
  std::string message;
  std::string call;
  std::string way;
};
std::vector<LendingLine> lines_of(const LendingRule& rule);

}  // namespace khoro
