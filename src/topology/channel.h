// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace khoro {

/// Indices of the links that data takes from a GPU to another, in order.
using LinkPath = std::vector<int>;

struct Hop {
  int from = 0;  // site of a GPU
  int to = 0;
  LinkPath route;
  bool operator==(const Hop&) const = default;
};

/// `ring`: each GPU receives from the one before it and sends to the one after. `tree`: data of the
/// root reaches all others; reversed, data of all others reaches it.
enum class ChannelKind : std::uint8_t { ring, tree };

/// "ring", "tree".
std::string_view name(ChannelKind kind) noexcept;

/// A way for data through all GPUs of a set.
struct Channel {
  ChannelKind kind = ChannelKind::ring;
  /// Site of the GPU whose data a tree spreads; of the first GPU of a ring.
  int root = 0;
  /// Of a ring: in order, the last one leads back to the root. Of a tree: a GPU is reached before
  /// anything leaves it.
  std::vector<Hop> hops;
  /// Of each hop.
  double bytes_per_second = 0;
  bool operator==(const Channel&) const = default;
};

/// Where a channel goes from a machine to another over a network: in which hop, and by which ports.
struct Crossing {
  int hop = 0;
  int exit = 0;   // site of a port
  int entry = 0;  // of a port of the other machine
  bool operator==(const Crossing&) const = default;
};

/// In the order of the hops.
std::vector<Crossing> crossings_of(const Topology& topology, const Channel& channel);

}  // namespace khoro
