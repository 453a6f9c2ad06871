// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "harness.h"

// What several programs are made of: sizes, origins of outputs, bandwidth factors, calls.
namespace khoro::benchmark {

// The row names the elements of the larger side. A share is what each rank has of them, so that
// the larger side is rounded down to whole shares.
Extent whole_to_whole(std::size_t elements, int ranks);
Extent share_to_whole(std::size_t elements, int ranks);
Extent whole_to_share(std::size_t elements, int ranks);
Extent shares_to_shares(std::size_t elements, int ranks);

/// The reduction of all inputs.
std::vector<Origin> reduced(const Extent& extent, const Place& at);
/// The inputs of all ranks, one after another.
std::vector<Origin> gathered(const Extent& extent, const Place& at);

/// As `expect` on the root, which alone gets a result.
template <std::vector<Origin> (*expect)(const Extent&, const Place&)>
std::vector<Origin> on_root(const Extent& extent, const Place& at) {
  return at.rank == at.root ? expect(extent, at) : std::vector<Origin>{};
}

/// All but a rank's own share crosses the bus.
double but_own_share(int ranks);

/// Moves a rank's own bytes, in the order of its calls.
khoroResult_t copy(const Call& call, void* to, const void* from, std::size_t bytes);

/// Sends to one rank and receives as much from another, as one group.
khoroResult_t exchange(const Call& call, int to, int from);

}  // namespace khoro::benchmark
