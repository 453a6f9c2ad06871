// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "support/catch.h"

namespace khoro::test {

/// The seed that `--seed N` on the command line of a test program names; nothing: all of them.
inline std::optional<std::uint64_t> only_seed;

/// Calls `play(seed)` for the seeds 0 to `count` - 1, or for the one of the command line. A failure
/// says how to play it again.
template <class Play>
void for_each_seed(std::uint64_t count, Play&& play) {
  for (std::uint64_t seed = only_seed.value_or(0); seed < only_seed.value_or(count - 1) + 1;
       ++seed) {
    INFO("seed " << seed << "; the same again: this test with --seed " << seed);
    play(seed);
  }
}

}  // namespace khoro::test
