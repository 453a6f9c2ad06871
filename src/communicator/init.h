// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "communicator/communicator.h"

namespace khoro {

/// How communicators are made. All throw `Error`; all read the settings from the environment.

/// A new id, and this process listening for the ranks that will present it.
std::array<char, 128> make_unique_id();

/// Joins as rank `rank` of `ranks`; blocks until all have come. Thread-safe.
std::unique_ptr<Communicator> init_rank(const std::array<char, 128>& id, int ranks, int rank);

/// Joins the job that the launcher describes, as the next thread of this process. Thread-safe.
std::unique_ptr<Communicator> init_world();

/// All ranks of a new communicator, by rank, connected without a meeting.
std::vector<std::unique_ptr<Communicator>> init_all_host(int ranks);

}  // namespace khoro
