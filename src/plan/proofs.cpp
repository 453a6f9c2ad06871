// SPDX-License-Identifier: Apache-2.0
#include "plan/proofs.h"

#include <algorithm>

namespace khoro {

Proofs prove(const Plan& plan, int slots) {
  Proofs proofs;
  for (bool in_place : {false, true})
    for (bool references : {false, true}) {
      const VerifyOptions options{.slots = slots, .in_place = in_place, .references = references};
      Verdict verdict = verify(plan, options);
      ++proofs.made;
      proofs.steps += verdict.steps;
      if (verdict.found) proofs.failures.push_back({options, std::move(*verdict.found)});
    }
  return proofs;
}

Proofs admit(Plan& plan, int slots) {
  Proofs proofs = prove(plan, slots);
  const bool only_lending = std::all_of(
      proofs.failures.begin(), proofs.failures.end(),
      [](const Proofs::Failure& f) { return f.options.in_place && f.options.references; });
  if (only_lending && !proofs.failures.empty()) {
    plan.lends_in_place = false;
    proofs = prove(plan, slots);
  }
  return proofs;
}

}  // namespace khoro
