// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace khoro::tool {

/// A ring or tree to be shown on a machine.
struct DrawnChannel {
  std::string name;
  /// Of each of its hops, in bytes per second.
  double bytes_per_second = 0;
  /// The links that its hops take, each as often as it is taken.
  std::vector<int> links;
};

/// Of each link the one of the same kind the other way; -1 if there is none.
std::vector<int> links_back(const Topology& topology);
/// Whether a link is drawn: of two that go both ways one stands for both.
bool is_drawn(const Topology& topology, const std::vector<int>& back, std::size_t link);

/// Text as XML and HTML take it.
std::string escaped(std::string_view text);

/// A picture of a machine: CPUs above, what hangs off them below, NICs with their ports in one row
/// and GPUs in the next, their direct links under it. Lines are as wide as their rates are high.
std::string svg_of(const Topology& topology);

/// A page that holds that picture, shows each channel on it, and how much of each link the channels
/// use together. It needs nothing but a browser.
std::string html_of(const Topology& topology, const std::vector<DrawnChannel>& channels,
                    const std::string& title);

}  // namespace khoro::tool
