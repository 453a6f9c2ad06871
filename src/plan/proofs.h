// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/verify.h"

namespace khoro {

/// The proofs that a plan needs before it may run with so many slots on every channel.
struct Proofs {
  struct Failure {
    VerifyOptions options;
    Verdict::Found found;
  };
  int made = 0;
  std::uint64_t steps = 0;  // run by all of them
  std::vector<Failure> failures;
};

/// Proves the plan not in place and in place, with messages copied, and lent as far as the plan
/// lends. All ranks alike covers every mix of them.
Proofs prove(const Plan& plan, int slots);

/// Proves a plan that came as text. If it fails only by lending in place, it is made to lend no
/// input then, and proved again.
Proofs admit(Plan& plan, int slots);

}  // namespace khoro
