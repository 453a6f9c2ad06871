// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace khoro {

/// Channels in shared memory, between ranks of one machine: processes, threads of one process, or
/// both. A channel's slots lie in its receiver's memory. References and windows work between ranks
/// of one process, and in memory that processes share.
std::unique_ptr<Transport> make_shm(const TransportSetup& setup);

namespace shm {

/// How much area `channels` channels to each rank need. Memory is sparse, so being generous costs
/// addresses only.
std::uint64_t area_bytes(int ranks, int channels_per_rank, ChannelShape shape);
/// See ChannelShape: so much that a rank of so many holds little before its first long message.
std::uint32_t parts_bytes(int ranks, std::uint32_t slots) noexcept;

}  // namespace shm
}  // namespace khoro
