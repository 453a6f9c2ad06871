// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan/proof/world.h"

namespace khoro::proof {

/// Why nothing moves: a lane that waits, and for what, down to a cycle or to a lane that has ended.
struct Stuck {
  int position = 0;  // in World::positions
  std::string message;
};

/// Precondition: some lane has not ended and nothing can move.
Stuck explain_stuck(const World& world);

/// "rank 3 lane 0 step 5: recv 2 | write output[1]"
std::string place_of(const Plan& plan, const StepAt& at);

}  // namespace khoro::proof
