// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "plan/proof/book.h"
#include "plan/proof/value.h"
#include "plan/verify.h"

namespace khoro::proof {

/// An output that is not as it must be, as a run without a book finds it.
struct Suspect {
  Outcome::Chunk where;
  std::optional<Requirement> required;  // none: it must not be written
  Value got;
  Value reference;             // of an unequal order: what the lowest rank holds
  bool premultiplied = false;  // factors belong into the sum
  bool out_of_order = false;   // it is no left fold in rank order
};

/// Says by the exact book of a second run what is wrong with an output, and points to the step.
void explain(const Plan& plan, const Suspect& suspect, const Book& book, Verdict::Found& found);

}  // namespace khoro::proof
