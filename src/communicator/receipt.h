// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace khoro {

/// What comes before the data of a message with a tag, as a message of its own on the same channel.
struct Announcement {
  std::uint64_t number;  // among those with its tag to that rank, as the sender counts
  std::uint64_t count;
  std::uint32_t tag;
  Dtype dtype;
  std::uint8_t unused[3];
};
static_assert(sizeof(Announcement) == 24);

/// A receive of a message with a tag, under way. The one who makes it keeps it where it is until it
/// is done or the communicator has failed.
struct Receipt {
  Announcement wanted;  // its number is as the receiver counts
  std::byte* buffer;
  bool done;
};

}  // namespace khoro
