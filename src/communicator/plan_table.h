// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "base/settings.h"
#include "communicator/call.h"
#include "executor/execution.h"
#include "executor/gpu/device_execution.h"
#include "executor/scratch.h"
#include "plan/program.h"
#include "planner/rule.h"
#include "topology/topology.h"

namespace khoro {

/// The indices of the channels that carry sends and receives, apart from those of any lane.
inline constexpr std::uint8_t plain_messages = 254;
inline constexpr std::uint8_t tagged_messages = 253;

/// The plans of one rank of one communicator, ready to run: each is chosen, flattened and bound to
/// its channels on first use, and found again afterwards. Every rank chooses alike, because a
/// choice depends only on the call, the topology and job settings. Thread-compatible.
class PlanTable {
 public:
  struct Entry {
    Collective collective;
    const Algorithm* algorithm = nullptr;  // null: a given plan
    std::uint64_t plan_hash = 0;
    // One of the two: where the table is.
    std::unique_ptr<Execution> execution;
    std::unique_ptr<gpu::DeviceExecution> on_gpu;
  };

  /// Borrows `ends`, or what the seat names. Throws invalid_argument if the settings force an
  /// algorithm that does not exist or cannot do what other settings ask for, or give a plan that
  /// cannot be read.
  PlanTable(int rank, int ranks, const Settings& settings, Ends& ends);
  PlanTable(int rank, int ranks, const Settings& settings, const gpu::DeviceSeat& seat);

  /// Throws invalid_argument if the settings force an algorithm that cannot do the call. `own` is
  /// the reduction, if it was made, here and below.
  void check(const Signature& signature, const OwnReduction* own) const;
  /// The entry lives as long as the table. Throws `Error`; invalid_argument if there are fewer
  /// slots than the algorithm needs.
  Entry& find(const Signature& signature, const OwnReduction* own);
  /// This rank's end of the messages to or from `peer` on one of the two channels: an execution of
  /// its own, which copies `count` elements from input or to output. Throws `Error`.
  std::unique_ptr<Execution> make_port(int peer, bool sends, std::uint8_t channel);
  /// The same on a GPU; where the peer is the rank itself both ends in one.
  std::unique_ptr<gpu::DeviceExecution> make_gpu_port(int peer, bool sends, std::uint8_t channel);
  /// Memory for partial results, which all plans share. Any thread.
  std::uint64_t scratch_bytes() const noexcept { return scratch_.bytes(); }

 private:
  PlanTable(int rank, int ranks, const Settings& settings);
  Collective collective_of(const Signature& signature, const OwnReduction* own) const;
  Choice choose(const Signature& signature, const Collective& collective) const;
  Entry& make(const Collective& collective, const Choice& choice);
  void force(const std::string& setting);
  void check_slots_for_all() const;
  void read_given_plan(const std::string& path);

  int rank_;
  Topology topology_;
  Medium medium_;
  int slots_;
  /// Every reduction is folded in rank order.
  bool exact_;
  ExecutionOptions options_;
  Scratch scratch_;
  Ends* ends_ = nullptr;  // null: on a GPU
  std::optional<gpu::DeviceSeat> seat_;
  const Algorithm* forced_ = nullptr;
  std::optional<Plan> given_;
  std::uint64_t given_hash_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace khoro
