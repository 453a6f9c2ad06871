// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/error.h"
#include "communicator/communicator.h"

namespace khoro {

/// How communicators are made. All throw `Error`; all read the settings from the environment.

/// A new id, and this process listening for the ranks that will present it.
std::array<char, 128> make_unique_id();

/// Joins as rank `rank` of `ranks`; blocks until all have come. Thread-safe.
std::unique_ptr<Communicator> init_rank(const std::array<char, 128>& id, int ranks, int rank);

/// Lets the others know, in place of init_rank(), that this rank does not come: they fail with that
/// reason. Blocks for a moment, and until `until` where the meeting is not open yet. Thread-safe.
void decline_rank(const std::array<char, 128>& id, int ranks, int rank, const Error& reason,
                  Time until) noexcept;

/// Takes the place of the next thread of this process in the job that the launcher describes, so
/// that the order of calls decides. Throws invalid_usage without a launcher, or when all threads of
/// this process have joined. Thread-safe.
int claim_thread_of_world();
/// Joins the launcher's job in a place that was claimed; blocks as init_rank. Thread-safe.
std::unique_ptr<Communicator> init_world(int thread);
/// As decline_rank().
void decline_world(int thread, const Error& reason, Time until) noexcept;

/// All ranks of a new communicator, by rank, connected without a meeting.
std::vector<std::unique_ptr<Communicator>> init_all_host(int ranks);

}  // namespace khoro
