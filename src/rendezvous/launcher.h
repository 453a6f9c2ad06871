// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace khoro {

/// The variables by which a launcher tells a process who it is.
struct LauncherRow {
  std::string_view name;  // in KHORO_LAUNCHER
  std::string_view who;   // who sets them, for messages
  /// It says which rank a process is if both are set, and is incomplete with one of them.
  std::string_view rank, size;
  std::string_view local_rank, local_size;  // among the ranks of the machine; may be missing
  /// What else is the same on all ranks of a job and tells it from others; "" after the last.
  std::array<std::string_view, 4> job;
  /// Whether one process sets them for all ranks of a machine, and for those of no other job. If
  /// not, a job can be told from others only where the first of `job` is set.
  bool starts_ranks;
  /// What else a rank has of it, to tell one from a rank of the same number around it; or "".
  std::string_view own;

  /// The names of all of them.
  std::vector<std::string_view> variables() const;
};

/// Where two launchers are as near to a process, the first of them counts.
std::span<const LauncherRow> launcher_rows() noexcept;

/// Variables of launchers, by name.
using LauncherVariables = std::map<std::string, std::string, std::less<>>;

/// A process, and the variables that it was started with; none if the system does not show them.
struct Ancestor {
  pid_t process = 0;
  std::uint64_t started = 0;  // ProcessStat::started
  std::string program;
  std::optional<LauncherVariables> variables;
};

/// All that is known of who started a process.
struct Ancestry {
  LauncherVariables variables;  // as they are now
  std::vector<Ancestor> line;   // the process itself, its parent, and so on, while they can be seen

  static Ancestry of_this_process();
};

/// What the variables of one launcher say.
struct LauncherReport {
  enum class State : std::uint8_t { absent, incomplete, complete };

  const LauncherRow* row = nullptr;
  State state = State::absent;
  LauncherVariables variables;
  std::string fault;  // what makes it incomplete
  int rank = -1;
  int size = -1;
  int local_rank = -1;  // -1: it does not say
  int local_size = -1;
  /// Who set them, and how many generations up that is: 0 is this process itself. None: whoever it
  /// was cannot be seen.
  std::optional<std::size_t> generation;
  Ancestor starter;
  std::string verdict;  // "wins", or why it does not, for people

  bool complete() const noexcept { return state == State::complete; }
  /// What all ranks of its job know and no other job of this machine has; "" if it says too little.
  std::string job() const;
};

struct LauncherChoice {
  std::vector<LauncherReport> reports;  // by row
  int winner = -1;                      // -1: no launcher is complete
  std::string why;

  const LauncherReport* chosen() const noexcept {
    return winner < 0 ? nullptr : &reports[static_cast<std::size_t>(winner)];
  }
};

/// The innermost launcher that says both rank and size: the one whose variables were set by the
/// nearest process, seen by walking from this one up to the first that was started without them or
/// with other values. `wanted`, unless it is "auto", names the one that counts instead. Pure.
LauncherChoice choose_launcher(const Ancestry& ancestry, std::string_view wanted = "auto");

}  // namespace khoro
