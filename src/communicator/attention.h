// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace khoro {

/// What a thread wants to be asked while it waits in calls: whether something else wants it more,
/// such as a signal. Only long waits ask, so that short ones cost nothing.
class Attention {
 public:
  /// Not 0: give up what is waited for.
  using Function = int (*)(void* context);
  static constexpr Duration interval = std::chrono::milliseconds(200);

  void set(Function function, void* context) noexcept {
    function_ = function;
    context_ = context;
  }
  bool is_set() const noexcept { return function_ != nullptr; }
  /// When a wait that began at `since` asks next.
  Time next(Time since) const noexcept {
    return function_ ? std::max(since + interval, next_) : never;
  }
  /// Asks, if it is time to. True: the wait is to end.
  bool calls_away(Time since, Time now) noexcept {
    if (now < next(since)) return false;
    next_ = now + interval;
    return function_(context_) != 0;
  }

 private:
  Function function_ = nullptr;
  void* context_ = nullptr;
  Time next_{};
};

/// Of the calling thread.
inline thread_local constinit Attention attention;

}  // namespace khoro
