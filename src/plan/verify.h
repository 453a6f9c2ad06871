// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/diagnostic.h"
#include "plan/program.h"

namespace khoro {

struct VerifyOptions {
  /// Slots of every channel.
  int slots = 2;
  /// Output may be the same memory as input (Collective::in_place_input) on every rank.
  bool in_place = false;
  /// Messages and windows: copied through slots, or by reference to the sender's memory wherever
  /// the grammar allows it.
  bool references = false;
  int tiles = 2;
};

/// What kind of fault was found, for tests that run the faulty plan and compare.
enum class Fault : std::uint8_t {
  malformed,      // out of bounds, a channel named twice, a token with two awaiting lanes, ...
  pairing,        // a message whose size or kind its receiver does not expect
  wrong_value,    // an output chunk lacks, doubles or adds a contribution, or is scaled wrongly
  unequal_order,  // ranks hold the same contributions folded in different orders
  deadlock,
  race,
  input_written,
  left_over,   // a message, window or token that is not back where it began
  no_barrier,  // a rank may end before another has started
};

struct Verdict {
  struct Found {
    Fault fault;
    Diagnostic diagnostic;
    int rank = -1;
    int chunk = -1;  // of the output, for wrong_value and unequal_order
  };
  /// The first cause; nothing when the plan is proved.
  std::optional<Found> found;
  std::uint64_t steps = 0;  // run by the proof
  bool proved() const noexcept { return !found; }
};

/// Runs the plan once, abstractly, and proves it for every byte count. Because a plan is a Kahn
/// network, one execution decides data, order, deadlock and slot safety; two tiles decide races.
Verdict verify(const Plan& plan, const VerifyOptions& options);

}  // namespace khoro
