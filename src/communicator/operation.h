// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "communicator/call.h"
#include "executor/execution.h"

namespace khoro {

/// One call under way, as the thread that made it sees it. The communicator fills it in.
struct Operation {
  Call call;
  /// Counts the collectives of a communicator, or the messages to or from one peer, from 1.
  std::uint64_t number = 0;
  /// Null: nothing to move.
  Execution* execution = nullptr;

  // Of the waiting.
  bool waits = false;  // it has been seen to wait, and only then the times below are set
  Time deadline;
  Time next_comparison;
  Time straggler_report;
  bool refusal_reported = false;
  /// The peer that has left while this rank waited for it; -1: none has.
  int left = -1;
};

}  // namespace khoro
