// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "api/config.h"
#include "api/guard.h"
#include "api/making.h"
#include "base/error.h"
#include "communicator/communicator.h"
#include "khoro/khoro.h"

namespace khoro {

/// A communicator that somebody asked for, and where its handle goes.
struct PendingInit {
  khoroComm_t* out = nullptr;
  Chosen chosen;
  /// Takes hold of what making it needs, on the caller's thread, right before it is made.
  std::function<Make()> begin;
  /// In its place, where no thread can be started for it: lets the other ranks know that this one
  /// does not come. Null if it has no way to. Never throws.
  std::function<void(const Error& reason)> decline = nullptr;
  /// Set if this rank takes part in making it and gets none: the one whose call it is.
  khoroComm_t without = nullptr;

  /// Begins to make it, if it does not block. Its handle, or NULL for one without.
  khoroComm_t start() const;
};

/// A call that somebody made in a group.
struct PendingCall {
  khoroComm_t handle;
  khoroStream_t stream;
  Call call;
};

/// What one thread has put off to the end of its outermost group.
class Group {
 public:
  /// The calling thread's.
  static Group& of_thread() noexcept;

  void add(khoroComm_t handle, khoroStream_t stream, const Call& call) {
    calls_.push_back({handle, stream, call});
  }
  bool makes_communicators() const noexcept { return !inits_.empty(); }
  const std::vector<PendingCall>& calls() const noexcept { return calls_; }
  /// Forgets the calls.
  void drop_calls() noexcept { calls_.clear(); }
  /// Is made at the end of the group, and its handle is written then.
  void add(PendingInit init) { inits_.push_back(std::move(init)); }

  /// Runs everything. Throws the first `Error`; the group is empty afterwards in any case. Returns
  /// khoroInProgress if a communicator that does not block is still being made.
  khoroResult_t run();

  /// A call on the stream is put off.
  bool holds(khoroStream_t stream) const noexcept;

  /// Makes checked calls together. Throws the first `Error`.
  static void run_calls(const std::vector<PendingCall>& calls);

 private:
  static void run_blocking(std::span<const PendingInit> inits);

  std::vector<PendingCall> calls_;
  std::vector<PendingInit> inits_;
};

}  // namespace khoro
