// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace khoro::tool {

/// Every process of a job is the leader of a session or has inherited one, whatever groups it made:
/// so what belongs to the job is found by session. Who left its session left the job.

/// The processes, zombies not counted, whose session is one of `sessions`. A session has the number
/// of its leader's process.
std::vector<pid_t> processes_of(std::span<const pid_t> sessions);

/// Sends `signal` to all of them.
void signal_sessions(std::span<const pid_t> sessions, int signal);

/// Kills all of them, and what they start meanwhile. Returns how many there were at first. Takes 3
/// s at most.
int kill_sessions(std::span<const pid_t> sessions);

}  // namespace khoro::tool
