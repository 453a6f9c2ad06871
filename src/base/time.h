// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace khoro {

using Duration = std::chrono::nanoseconds;
/// A point on a clock that never goes back, counted from an origin that is fixed for the process.
/// It is comparable only within one `System`.
using Time = std::chrono::nanoseconds;

inline constexpr Time never = Time::max();

}  // namespace khoro
