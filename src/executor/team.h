// SPDX-License-Identifier: Apache-2.0
#pragma once

// The threads that work together on one lane. A team has `rank()` of `size()` and `sync()`, after
// which each member sees what all wrote before it. Member 0 leads: it alone asks channels and
// tokens; the data is shared out among all.

#include "base/device.h"

namespace khoro {

/// One host thread by itself.
struct Alone {
  KHORO_HD static constexpr unsigned rank() noexcept { return 0; }
  KHORO_HD static constexpr unsigned size() noexcept { return 1; }
  KHORO_HD static constexpr void sync() noexcept {}
};

}  // namespace khoro
