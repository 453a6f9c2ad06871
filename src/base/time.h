// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <chrono>

namespace khoro {

using Duration = std::chrono::nanoseconds;
/// A point on a clock that never goes back, counted from an origin that is fixed for the process.
/// It is comparable only within one `System`.
using Time = std::chrono::nanoseconds;

inline constexpr Time never = Time::max();

/// `by` after `time`, which is not before the clock's origin; never where that cannot be said.
constexpr Time later(Time time, Duration by) noexcept {
  return by > never - time ? never : time + by;
}

/// As the system takes it; 0 for what has passed.
constexpr timespec to_timespec(Duration duration) noexcept {
  const Duration::rep left = duration.count() > 0 ? duration.count() : 0;
  return {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
}

}  // namespace khoro
