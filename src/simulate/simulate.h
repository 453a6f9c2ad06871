// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/program.h"
#include "topology/topology.h"

namespace khoro {

/// A call whose time is asked for.
struct SimulatedCall {
  /// The count of the call in bytes: of the whole vector, or of a block where the collective has
  /// one per rank.
  std::size_t bytes = 0;
  int slots = 8;
  /// Most bytes of one message.
  std::size_t slot_bytes = std::size_t{512} << 10;
};

/// One message on its way.
struct Transfer {
  int from = 0;  // ranks
  int to = 0;
  int lane = 0;  // of the sender
  std::size_t bytes = 0;
  double begin = 0;  // seconds
  double end = 0;    // when the receiver has all of it
};

/// What happened when.
struct Simulation {
  /// When the last rank was done.
  double seconds = 0;
  /// In the order in which they ended.
  std::vector<Transfer> transfers;
  /// By link of the topology: the bytes that went over it.
  std::vector<double> link_bytes;
  /// Empty if the plan ended; else who waits for what.
  std::string stuck;
};

/// Plays a plan on a topology. A message takes the best path between the sites of its ranks; where
/// several ports are equally good, channels are dealt out to them. Messages of one channel leave
/// one after the other; a message shares each link with those that are on it, as TCP or a crossbar
/// would (max-min fair), and is there the sum of the latencies after its last byte left. What ranks
/// do themselves takes no time: reducing, copying, giving a slot back; nor does a message between
/// ranks on one site.
///
/// Exact and deterministic; no plan is proved by it. Throws invalid_argument where the topology
/// places another number of ranks or does not join two that talk, or the call takes more messages
/// than most_simulated_messages.
inline constexpr std::size_t most_simulated_messages = 2'000'000;

Simulation simulate(const Plan& plan, const Topology& topology, const SimulatedCall& call);

}  // namespace khoro
