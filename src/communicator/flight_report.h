// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "communicator/rank_page.h"

namespace khoro {

/// What became of a rank, the worst last. Of several ranks with the worst, all are to blame.
enum class RankVerdict : std::uint8_t {
  between_calls,
  in_call,
  left,        // the communicator, in order
  not_called,  // others wait for it in a call that it has not made
  aborted,
  revoked,
  cycle,     // it waits for others that wait for it, and none of them can go on
  mismatch,  // its call is another than that of most
  stopped,
  dead,
};
/// "between calls", "in a call", ...
std::string_view name(RankVerdict verdict) noexcept;

enum class ProcessState : std::uint8_t { runs, stopped, ended };

/// A rank of a communicator as it is seen from outside, by its memory and its process.
struct Sighting {
  int rank = 0;
  pid_t pid = 0;
  const RankPage* page = nullptr;  // borrowed
  ProcessState process = ProcessState::runs;
  std::string end;  // how the process ended, if that is known
};

/// What is said of one rank.
struct RankAccount {
  int rank = 0;
  pid_t pid = 0;
  std::uint64_t calls = 0;  // collectives begun
  /// "#17 khoroAllReduce(4 x khoroFloat32, khoroSum)", or "nothing". Messages are numbered by peer
  /// and direction: "#2 khoroSend(5 x khoroInt32, to rank 1)".
  std::string finished;   // the last collective, and the last send or receive
  std::string under_way;  // begun and not finished, of which a group has several
  RankVerdict verdict = RankVerdict::between_calls;
  std::string detail;    // of the verdict; may be empty
  bool gave_up = false;  // it knows that the communicator has failed: its calls return why
};

/// The state of a communicator, from what its ranks wrote while they could: nothing is asked of
/// them. `cause` is why it failed, if it has.
std::vector<RankAccount> account_for(std::span<const Sighting> ranks,
                                     const std::optional<Cause>& cause);

/// Ranks that say the same; `pid` is 0 where they have several.
struct RankGroup {
  std::set<int> ranks;
  RankAccount account;  // of each of them, but for rank and pid
};
/// In the order of the worst verdict first, then of ranks.
std::vector<RankGroup> group(std::span<const RankAccount> accounts);

/// "rank 2 is dead", "ranks 1, 3-5 are stopped": the ranks with the worst verdict.
std::string headline(std::span<const RankGroup> groups);
/// One line for each group: who, verdict, last finished call, call under way.
std::vector<std::string> lines_of(std::span<const RankGroup> groups);

}  // namespace khoro
