// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "algorithms/algorithm.h"

namespace khoro {

// Plans made of plans: some of the ranks, a part, do a collective of their own as one phase of a
// larger one. Its steps are those of an algorithm for as many ranks as the part has, with other
// names for the peers and for what is read and written.
//
// Phases one after the other on one lane cannot hold each other up, whatever parts they have in
// common, if all ranks take theirs in one order. Of the phases that are not over look at the first:
// who is through with it has sent and received all that the others still wait for, so that it goes
// on as it would alone. Hence they may use the same channels, with the slots that each needs.

/// This rank's share in the phase of a part.
struct Part {
  const Algorithm& algorithm;  // of one lane
  /// Of the part alone; its ranks are numbers in it.
  Collective collective;
  std::vector<int> ranks;  // by number
  int number = 0;          // this rank's
  /// Where each chunk of the phase's buffers lies on this rank. Several that a step names together
  /// lie one after the other, and are one message; one may also be of several chunks or of none.
  std::vector<Span> input;
  std::vector<Span> output;
  std::vector<Span> scratch = {};  // if the algorithm has any
};

/// The steps of a part. A value of no chunks is not sent, and none is written where it was read.
Lane lane_of(Part part);

/// A step that goes from one place to another.
struct Copy {
  Span from;
  Span to;
};
Lane copies(std::vector<Copy> copies);

/// One lane after the other.
Lane in_turn(std::vector<Lane> lanes);

}  // namespace khoro
