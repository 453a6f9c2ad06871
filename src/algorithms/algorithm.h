// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "plan/program.h"
#include "topology/topology.h"

namespace khoro {

/// What an algorithm may know beside the collective and the topology. Only what all ranks know
/// alike.
struct Shape {
  int lanes = 1;
  /// Slots of every channel.
  int slots = 8;
  bool operator==(const Shape&) const = default;
};

/// What the algorithm's formulas say: the longest chain of messages of which each is sent after the
/// one before was received, and the bytes that the busiest rank sends per byte of the whole vector.
struct Cost {
  int rounds = 0;
  double sent_per_byte = 0;
};

/// The program of each rank.
using Programs = std::function<Program(int rank)>;

/// One way to do one collective. Each is defined in a file of its own, whose first comment states
/// rounds, bytes and slots, and listed in registry.cpp.
struct Algorithm {
  std::string_view name;
  CollectiveKind collective;
  /// Counted up when the program changes: it is part of the plan hash.
  int version = 1;
  /// The least number of slots per channel with which it cannot deadlock.
  int least_slots = 1;
  /// The most channels from one rank to another; more than 2 also where the topology decides.
  int most_channels = 2;
  /// See Plan.
  bool lends_in_place = true;
  /// It folds every output from the left in rank order 0..n-1.
  bool rank_order = false;
  /// It cannot do blocks that differ in length: it keeps many of them together in scratch.
  bool equal_blocks = false;
  /// Its plans depend on which ranks share a machine.
  bool by_machine = false;
  /// What cost() computes, for people: P ranks, S bytes of the whole vector; N machines, the
  /// largest of which has G ranks and the smallest R.
  std::string_view rounds;
  std::string_view sent;
  int (*chunks)(const Collective&, const Topology&, const Shape&);
  Program (*program)(const Collective&, const Topology&, const Shape&, int rank) = nullptr;
  /// In place of program() where what all ranks have in common takes long to find.
  Programs (*programs)(const Collective&, const Topology&, const Shape&) = nullptr;
  Cost (*cost)(const Collective&, const Topology&, const Shape&);
  /// Chunks of the widest message of any rank. Null: 1.
  int (*widest)(const Collective&, const Topology&, const Shape&) = nullptr;
  /// One for each chunk of a block. Null: chunks are alike.
  Weights (*weights)(const Collective&, const Topology&, const Shape&) = nullptr;
};

/// Every algorithm there is, in the order in which `khoro plan list` prints them.
std::span<const Algorithm* const> algorithms() noexcept;
/// Null if the collective has no algorithm of that name.
const Algorithm* find_algorithm(CollectiveKind collective, std::string_view name) noexcept;

/// What makes the programs of the ranks, by whichever of the two the algorithm has.
Programs programs_of(const Algorithm& algorithm, const Collective& collective,
                     const Topology& topology, const Shape& shape);
/// The plan of an algorithm, all ranks, nothing built yet. Throws invalid_argument if the
/// collective is not the algorithm's, has no such root, or is of another size than the topology.
Plan make_plan(const Algorithm& algorithm, const Collective& collective, const Topology& topology,
               const Shape& shape);
/// The plan hash: over what generated the plan.
std::uint64_t plan_hash(const Algorithm& algorithm, const Collective& collective,
                        const Topology& topology, const Shape& shape) noexcept;

}  // namespace khoro
