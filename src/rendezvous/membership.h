// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "base/time.h"
#include "rendezvous/unique_id.h"

namespace khoro {

/// What a rank shows the others when it joins.
struct Introduction {
  int rank = 0;
  std::uint64_t process = 0;  // drawn at random by the process
  /// The rank's shared memory (a sealed memfd), its doorbell's eventfd, and a pidfd of its process.
  Descriptor memory;
  Descriptor doorbell;
  Descriptor pidfd;
  /// Digest of what must be equal on all ranks: versions, job settings.
  std::uint64_t job_digest = 0;
};

/// Everybody that joined, by rank, with their descriptors. The owner of the membership owns them.
struct Membership {
  std::uint64_t communicator = 0;  // the same on all ranks, unlike any other communicator's
  std::vector<Introduction> members;
};

/// Meets the other ranks under `id`: authenticates both ways, hands over `mine` and receives
/// everybody's. The process that made the id, or rank 0 of a launcher's job, serves the meeting on
/// its own thread. Blocks until all have come. Throws `Error`: timeout naming the ranks that did
/// not come, remote_error with another rank's reason, invalid_argument for a duplicate rank or
/// unequal sizes.
Membership join(const UniqueId& id, int ranks, Introduction mine, Time deadline);

}  // namespace khoro
