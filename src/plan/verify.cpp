// SPDX-License-Identifier: Apache-2.0
#include "plan/verify.h"

#include <array>
#include <cstddef>

#include "plan/proof/explain.h"
#include "plan/proof/machine.h"

namespace khoro {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 10> fault_names = {
    "malformed", "pairing", "wrong value",   "unequal order", "wrong order",
    "deadlock",  "race",    "input written", "left over",     "no barrier"};

}  // namespace

std::string_view name(Fault fault) noexcept { return fault_names[static_cast<std::size_t>(fault)]; }

Verdict verify(const Plan& plan, const VerifyOptions& options) {
  proof::Machine machine(plan, options);
  Verdict verdict = machine.run();
  if (const std::optional<proof::Suspect>& suspect = machine.suspect()) {
    proof::Book book(suspect->where, suspect->got.chunk,
                     suspect->required ? suspect->required->chunk : -1);
    proof::Machine(plan, options, &book).run();
    proof::explain(plan, *suspect, book, *verdict.found);
  }
  if (verdict.found && verdict.found->at && plan.line) {
    const StepAt& at = *verdict.found->at;
    verdict.found->diagnostic.line = plan.line(at.rank, at.lane, at.step);
  }
  return verdict;
}

}  // namespace khoro
