// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "topology/bound.h"
#include "topology/channel.h"
#include "topology/topology.h"

namespace khoro {

/// What an answer comes from. `tiers`: trees from machine to machine, and in each among its GPUs.
/// `none`: there is nothing to join, or no links join it.
enum class Method : std::uint8_t { none, switches, mesh, rings, trees, tiers };

/// "switches", "rings".
std::string_view name(Method method) noexcept;

/// How data passes between the GPUs of a set, how fast, and how fast it could at best.
struct Answer {
  /// Sites, in the order of their names.
  std::vector<int> gpus;
  LinkChoice links = LinkChoice::direct;
  Method method = Method::none;
  std::vector<Channel> channels;
  /// Bus bandwidth of allgather, reducescatter and allreduce, in bytes per second.
  double bus = 0;
  Bound bound;
  /// Links that the channels leave nothing of.
  std::vector<int> full;

  /// Share of the bound that is reached, 1 where there is nothing to reach.
  double ratio() const noexcept { return bound.bus > 0 ? bus / bound.bus : 1; }
};

/// The answer for all GPUs asked for; where direct links do not join all of these, or some GPU's
/// direct links are much slower than those of its peers, also one for each group of healthy GPUs
/// that direct links do join. GPUs of no island are what keeps others back.
struct Answers {
  Answer whole;
  std::vector<Answer> islands;
};

/// The best channels between GPUs that some links give: rings, unless these stay more than 5 %
/// below the bound and trees do better; over networks trees of tiers, unless they stay more than
/// 2 % below it and others do better. Pure and deterministic: it depends on the names of sites,
/// not on their order.
Answer search_channels(const Topology& topology, std::span<const int> gpus, LinkChoice links);

/// Over direct links where these join all GPUs, else over all; where the GPUs are of several
/// machines also over networks between these, from each port to ports of the same rail alone. All
/// ranks that ask the same of the same topology get the same. Throws where a site is no GPU or
/// comes twice.
Answers search_channels(const Topology& topology, std::span<const int> gpus);

/// Most channels that an answer has, but for trees: from each GPU there are some.
inline constexpr int most_rings = 32;

}  // namespace khoro
