// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <span>

#include "base/descriptor.h"

namespace khoro::tool {

/// The sessions of a job, in memory that the launcher, its guardian and the ranks before they start
/// their program share: each rank enters its own, so that none is ever running and unknown.
class SessionList {
 public:
  explicit SessionList(std::size_t capacity);
  ~SessionList();
  SessionList(const SessionList&) = delete;
  SessionList& operator=(const SessionList&) = delete;

  /// By the rank's own process, once it has made its session.
  void enter(std::size_t index, pid_t session) noexcept;
  /// Those entered so far; 0 stands for one that was not.
  std::span<const pid_t> all() const noexcept { return {sessions_, capacity_}; }

 private:
  pid_t* sessions_;
  std::size_t capacity_;
};

/// A process that outlives the launcher by as long as it takes to end the job. The launcher in turn
/// ends the job when the guardian dies.
class Guardian {
 public:
  /// Forks it. Throws `Error`.
  explicit Guardian(const SessionList& sessions);
  /// Ends it: the job is over.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  /// Readable once it has died.
  int descriptor() const noexcept { return pidfd_.number(); }

 private:
  pid_t process_ = 0;
  Descriptor pidfd_;
};

}  // namespace khoro::tool
