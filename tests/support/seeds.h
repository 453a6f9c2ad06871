// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "support/catch.h"

namespace khoro::test {

/// What the command line of a test program says: `--seed N` plays that seed alone, `--seeds N` so
/// many, from that one on or from 0.
inline std::optional<std::uint64_t> first_seed, seed_count;

/// Calls `play(seed)` for the seeds 0 to `count` - 1, or for those of the command line. A failure
/// says how to play it again.
template <class Play>
void for_each_seed(std::uint64_t count, Play&& play) {
  const std::uint64_t first = first_seed.value_or(0);
  const std::uint64_t end = first + seed_count.value_or(first_seed ? 1 : count);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    INFO("seed " << seed << "; the same again: this test with --seed " << seed);
    play(seed);
  }
}

}  // namespace khoro::test
