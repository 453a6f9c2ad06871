// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "plan/program.h"

namespace khoro {

struct VerifyOptions {
  /// Slots of every channel.
  int slots = 2;
  /// Output is the same memory as input (Collective::in_place_input) on every rank.
  bool in_place = false;
  /// Messages and windows: copied through slots, or by reference to the sender's memory wherever
  /// the grammar and Plan::lends_in_place allow it.
  bool references = false;
  /// Those after the first can add nothing but races, and are not run where none is possible.
  int tiles = 2;
};

/// The kind of fault.
enum class Fault : std::uint8_t {
  malformed,      // out of bounds, a channel named twice, a token with two awaiting lanes, ...
  pairing,        // a message whose size or kind its receiver does not expect
  wrong_value,    // an output chunk lacks, doubles or adds a contribution, or is scaled wrongly
  unequal_order,  // ranks hold the same contributions folded in different orders
  wrong_order,    // folded otherwise than from the left in rank order, which was asked for
  deadlock,
  race,
  input_written,  // or read after output, the same memory in place, was written
  left_over,      // a message, window or token that is not back where it began
  no_barrier,     // a rank may end before another has started
};

std::string_view name(Fault fault) noexcept;

/// A step of a run of the plan; all count from 0.
struct StepAt {
  int rank = 0;
  int lane = 0;
  int tile = 0;
  int step = 0;
  bool operator==(const StepAt&) const = default;
};

/// What comes of running a faulty plan as far as it goes, for those who run it and compare.
struct Outcome {
  struct Chunk {
    int rank = 0;
    int chunk = 0;  // of the output
    bool operator==(const Chunk&) const = default;
  };
  /// No executor starts it, or it stops with an error of its own (malformed, pairing).
  bool refused = false;
  bool hangs = false;
  bool left_over = false;
  bool early = false;  // a rank may leave the barrier too soon
  /// Output chunks that hold something else than what is required; nothing is said when it hangs.
  std::vector<Chunk> wrong;
  /// Output chunks that hold the right contributions, folded in another order than on the lowest
  /// rank that has the chunk, or than in rank order where that was asked for.
  std::vector<Chunk> unequal;
};

struct Verdict {
  struct Found {
    Fault fault = Fault::malformed;
    Diagnostic diagnostic;
    /// The step that the diagnostic points to, if it points to one.
    std::optional<StepAt> at;
    /// The first output chunk that holds a wrong value or an unequal order; -1 if none does.
    int rank = -1;
    int chunk = -1;
    /// Of a race: two steps that nothing orders. The fault shows when the first has ended before
    /// the second begins; or, if other steps race too and do the harm, perhaps the other way round.
    std::vector<StepAt> witness;
    /// Of a race, what comes of it in the other order.
    Outcome outcome;
  };
  /// The first cause; nothing when the plan is proved. A race comes before the wrong values that it
  /// may have brought.
  std::optional<Found> found;
  std::uint64_t steps = 0;  // run by the proof
  bool proved() const noexcept { return !found; }
};

/// Runs the plan once, abstractly, and proves it for every byte count. Because a plan is a Kahn
/// network, one execution decides data, order, deadlock and slot safety; two tiles decide races.
/// Takes whatever it is given: only an exception of the plan's own program, or want of memory,
/// leaves it.
Verdict verify(const Plan& plan, const VerifyOptions& options);

}  // namespace khoro
