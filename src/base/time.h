// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace khoro
