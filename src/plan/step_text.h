// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/program.h"
#include "plan/step.h"
#include "plan/words.h"

namespace khoro {

// Caps of what a text may name.
inline constexpr int most_lanes = 253;
inline constexpr int most_chunks = 1 << 20;

/// What a step may refer to.
struct StepScope {
  int ranks;
  const std::vector<Token>& tokens;  // borrowed
};

/// Reads one step, a whole line, and appends its stages. Throws `Refusal`; then some stages may
/// have been appended.
void read_step(Words& words, const StepScope& scope, std::vector<Stage>& stages);

}  // namespace khoro
