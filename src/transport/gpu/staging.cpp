// SPDX-License-Identifier: Apache-2.0
#include "transport/gpu/staging.h"

namespace khoro {

std::byte* Staging::place(int rank, std::uint64_t offset, std::uint64_t bytes) {
  const std::span<std::byte> piece =
      memory_.at(static_cast<std::size_t>(rank)).subspan(offset, bytes);
  pinned_.push_back(driver_.pin(piece));
  if (rank == self_) bytes_ += bytes;
  return reinterpret_cast<std::byte*>(driver_.in_kernels(device_, pinned_.back()->address()));
}

}  // namespace khoro
