// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace khoro {

/// What the system says of a process.
struct ProcessStat {
  /// As in proc(5): R and S run, T and t are stopped, Z and X have ended.
  char state = 0;
  pid_t parent = 0;
  pid_t session = 0;
  int threads = 0;
  bool dying = false;  // the system has begun to end it
  /// When it started, in clock ticks since the system did: with the number it tells a process from
  /// all others.
  std::uint64_t started = 0;

  bool stopped() const noexcept { return state == 'T' || state == 't'; }
  /// The state is that of the first thread, which may have ended before the others.
  bool ended() const noexcept { return (state == 'Z' || state == 'X') && threads < 2; }
};

/// None if there is no such process, or the system hides it.
std::optional<ProcessStat> stat_of(pid_t process) noexcept;

}  // namespace khoro
