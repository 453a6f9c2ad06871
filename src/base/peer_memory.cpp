// SPDX-License-Identifier: Apache-2.0
#include "base/peer_memory.h"

#include <sys/uio.h>

namespace khoro {

bool PeerMemory::read(std::byte* to, std::uint64_t from, std::uint64_t bytes) const noexcept {
  std::uint64_t found = 0;
  const iovec here[] = {{to, bytes}, {&found, sizeof found}};
  const iovec there[] = {{reinterpret_cast<void*>(from), bytes},
                         {reinterpret_cast<void*>(word_at), sizeof word}};
  const auto done = ::process_vm_readv(pid, here, 2, there, 2, 0);
  return done >= 0 && static_cast<std::uint64_t>(done) == bytes + sizeof found && found == word;
}

}  // namespace khoro
