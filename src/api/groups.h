// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "api/guard.h"
#include "base/error.h"
#include "base/time.h"
#include "communicator/communicator.h"
#include "khoro/khoro.h"

namespace khoro {

/// What one thread has put off to the end of its outermost group.
class Group {
 public:
  /// The calling thread's.
  static Group& of_thread() noexcept;

  struct Init {
    std::function<std::unique_ptr<Communicator>()> make;
    /// In its place: lets the other ranks know that this one does not come. Never throws.
    std::function<void(const Error& reason, Time until)> decline;
  };

  void add(khoroComm_t handle, khoroStream_t stream, const Call& call) {
    calls_.push_back({handle, stream, call});
  }
  /// Made at the end of the group, and its handle is written to `out` then.
  void add(khoroComm_t* out, Init init) { inits_.push_back({out, std::move(init)}); }

  /// Runs everything. Throws the first `Error`; the group is empty afterwards in any case.
  void run();

  /// A call on the stream is put off.
  bool holds(khoroStream_t stream) const noexcept;

 private:
  struct PendingCall {
    khoroComm_t handle;
    khoroStream_t stream;
    Call call;
  };
  struct PendingInit {
    khoroComm_t* out;
    Init init;
  };
  static void run_inits(std::vector<PendingInit> inits);
  static void run_calls(const std::vector<PendingCall>& calls);

  std::vector<PendingCall> calls_;
  std::vector<PendingInit> inits_;
};

}  // namespace khoro
