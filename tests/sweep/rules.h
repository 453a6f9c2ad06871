// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/case.h"
#include "support/expectation.h"
#include "sweep/space.h"

namespace khoro::test {

/// What decides on the plan of a call, by name.
struct PlanNames {
  std::string collective, algorithm, ranks, root, reduction, determinism;
};
/// A call of one element.
Case smallest_case(const PlanNames& names);

/// Adds to a space of all axes what cannot be. Borrows the book, in which it looks up which plans
/// there are.
void add_rules(Space& space, PlanBook& book);

}  // namespace khoro::test
