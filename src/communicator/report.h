// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "communicator/peers.h"

namespace khoro {

/// A finding that poisons, and its words.
struct Finding {
  Cause cause;
  std::string message;
};

/// "rank 3", "ranks 1, 4 and 5".
/// "CALL: RANK wrote what no correct rank writes; ..."
std::string words_of_damage(const std::string& call, const std::string& who);

std::string list_ranks(const std::vector<int>& ranks);

/// The words for a cause: what happened, to which operation, who is to blame, and what to do.
/// `reporter` is the rank that told it, or -1 if this rank found it itself.
std::string words(const Cause& cause, int reporter, const Peers& peers);

/// Those that have not begun collective `number`.
std::vector<int> missing_ranks(const Peers& peers, std::uint64_t number);

/// Those whose collective `number` is not that of most, or all that have called it where no call is
/// that of most. None if all agree.
std::vector<int> odd_ranks(const Peers& peers, std::uint64_t number);

/// Compares what all ranks called as collective `number`, from their records. Nothing if all that
/// have called it agree. Names the odd ranks and both calls, or all calls where there is no
/// majority.
std::optional<Finding> compare_calls(const Peers& peers, std::uint64_t number);

/// Compares all collectives that this rank and the next one have made, by their chains; that goes
/// as long as they are less than 256 calls apart. Names them as compare_calls().
std::optional<Finding> compare_histories(const Peers& peers);

/// What is said of a message whose ends differ.
Finding unequal_ends(const CallRecord& sent, const CallRecord& received);

/// Compares the two ends of message `number` from `sender` with that tag, from their records.
/// Without `receiver` (-1) it looks for one whose end differs.
std::optional<Finding> compare_messages(const Peers& peers, int sender, int receiver,
                                        std::uint64_t number, std::uint32_t tag = 0);

/// The send or receive with that number among those to or from `peer` with that tag, if its record
/// is still there.
std::optional<CallRecord> find_message(const RankPage& page, CallKind kind, int peer,
                                       std::uint64_t number, std::uint32_t tag = 0);

/// The rank of `page` has not made its part of a call of rank `caller`: the same collective, or the
/// other end of a message between the two. With a tag: it has that end not under way.
bool lacks(const RankPage& page, int caller, const CallRecord& call);
/// Then the call that it had refused instead.
std::optional<CallRecord> refused_instead(const RankPage& page, int caller, const CallRecord& call);

/// Why a call was not done by its deadline: who has not called it, else whom this rank waited for
/// (-1: unknown).
Finding timed_out(const Peers& peers, const CallRecord& call, int waited_for,
                  std::int64_t deadline_ms);

}  // namespace khoro
