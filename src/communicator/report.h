// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "communicator/peers.h"

namespace khoro {

/// A finding that poisons, and its words.
struct Finding {
  Cause cause;
  std::string message;
};

/// The words for a cause: what happened, to which operation, who is to blame, and what to do.
/// `reporter` is the rank that told it, or -1 if this rank found it itself.
std::string words(const Cause& cause, int reporter, const Peers& peers);

/// "rank 3", "ranks 1, 4 and 5": those that have not begun collective `number`. Empty if none.
std::string missing_ranks(const Peers& peers, std::uint64_t number);

/// Compares what all ranks called as collective `number`, from their records. Nothing if all that
/// have called it agree. Names the odd ranks and both calls, or all calls where there is no
/// majority.
std::optional<Finding> compare_calls(const Peers& peers, std::uint64_t number);

/// Why a collective was not done by its deadline: who has not called it, else whom this rank
/// waited for (-1: unknown).
Finding timed_out(const Peers& peers, const CallRecord& call, int waited_for,
                  std::int64_t deadline_ms);

}  // namespace khoro
