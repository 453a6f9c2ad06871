// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "topology/reading.h"

namespace khoro {

/// The canonical text of a topology; equal topologies print equal:
///
///     topology
///     gpu gpu0 machine 0 busid=0000:06:00.0 link_speed="8 GT/s"
///     link nvlink gpu0 -- gpu1 x2 40 GB/s 1 us
///     rank 0 gpu0
///
/// A link with `--` goes both ways, one with `->` one way; the rate is that of each direction, of
/// all links together. What is not known is left out.
std::string print(const Topology& topology);

/// Reads what print() wrote: for a topology whose rates are finite, the same again. `#` begins a
/// comment. Takes 16 MiB of text, 65,536 sites and 4,194,304 links.
Reading parse_topology(std::string_view text);

}  // namespace khoro
