// SPDX-License-Identifier: Apache-2.0
#include "communicator/peer_arenas.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace khoro {

std::shared_ptr<Arena> arena_to_share() noexcept {
  try {
    return Arena::of_process();
  } catch (const std::exception& reason) {
    log(LogLevel::info, "memory of this process cannot be shared with other ranks: {}",
        reason.what());
    return {};
  }
}

PeerArenas map_arenas(Membership& membership) {
  PeerArenas arenas;
  for (Introduction& member : membership.members) {
    if (!member.arena) continue;
    const Descriptor shown = std::exchange(member.arena, Descriptor());
    try {
      const Mapping mapping =
          Mapping::open(shown.number(), Arena::page,
                        fmt::format("what the process of rank {} shares", member.rank));
      const std::span<std::byte> bytes = mapping.bytes();
      if (bytes.size() > Arena::most_bytes)
        throw Error(Code::remote_error, fmt::format("rank {} shares {} bytes, more than there are",
                                                    member.rank, bytes.size()));
      ::madvise(bytes.data(), bytes.size(), MADV_DONTDUMP);
      arenas.emplace(member.process, mapping);
    } catch (const Error& reason) {
      log(LogLevel::info, "messages of rank {} are copied: {}", member.rank, reason.what());
    }
  }
  return arenas;
}

}  // namespace khoro
