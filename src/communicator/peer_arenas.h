// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/arena.h"
#include "base/shared_memory.h"
#include "rendezvous/membership.h"

namespace khoro {

/// What the processes of peers share of their callers' memory, by the number of the process. All
/// communicators of this process share one mapping of each.
using PeerArenas = std::map<std::uint64_t, Mapping>;

/// What this process shares; null if it cannot share anything, which is logged: its ranks then copy
/// what they send.
std::shared_ptr<Arena> arena_to_share() noexcept;

/// Maps what the members of other processes show and closes the descriptors. What cannot be mapped
/// is left out, and logged: this process has messages from there copied to it.
PeerArenas map_arenas(Membership& membership);

}  // namespace khoro
