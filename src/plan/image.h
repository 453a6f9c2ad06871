// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/program.h"

namespace khoro {

/// One end of a channel as a program names it: the peer and the index, and on which side we are.
struct Port {
  int peer = 0;
  std::uint8_t index = 0;
  bool sends = false;
  bool operator==(const Port&) const = default;
};

/// One rank's program flattened to what an executor reads: the stages of all lanes in one array.
/// Immutable once made.
struct Image {
  struct Range {
    std::uint32_t first = 0;  // in stages
    std::uint32_t last = 0;
  };
  std::vector<Stage> stages;
  std::vector<Range> lanes;
  std::vector<int> token_counts;
  /// Every port the program uses, each once.
  std::vector<Port> ports;
  /// For each stage with a channel its index in `ports`; 0 elsewhere.
  std::vector<std::uint32_t> port_of_stage;
  int rank = 0;
  int chunks = 1;
  Weights weights;
  int scratch_chunks = 0;
  /// Of the plan, not of this program: the same on all ranks.
  int widest_message = 1;
  /// Of the plan.
  bool lends_in_place = true;
  /// The program hash: over the stages, lanes and tokens.
  std::uint64_t hash = 0;
};

/// Runs the program's lanes to their ends. Channel indices left to the lane are resolved here.
Image flatten(const Plan& plan, int rank);

}  // namespace khoro
