// SPDX-License-Identifier: Apache-2.0
#include "transport/gpu/staging.h"

#include <map>
#include <mutex>

namespace khoro {
namespace {

/// What ranks of this process have pinned, and may want to pin together: they have the same memory
/// mapped at the same place.
struct Pinned {
  std::mutex mutex;
  std::map<std::pair<Driver*, std::byte*>, std::weak_ptr<PinnedMemory>> pieces;
};
Pinned& pinned() {
  static auto* const pinned = new Pinned;
  return *pinned;
}

std::shared_ptr<PinnedMemory> pin(Driver& driver, std::span<std::byte> piece) {
  const std::lock_guard lock(pinned().mutex);
  std::erase_if(pinned().pieces, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<PinnedMemory>& known = pinned().pieces[{&driver, piece.data()}];
  std::shared_ptr<PinnedMemory> memory = known.lock();
  if (!memory) {
    memory = driver.pin(piece);
    known = memory;
  }
  return memory;
}

}  // namespace

Staging::~Staging() {
  // Nobody may find a piece that is about to be let go.
  const std::lock_guard lock(pinned().mutex);
  pinned_.clear();
}

std::byte* Staging::place(int rank, std::uint64_t offset, std::uint64_t bytes) {
  const std::span<std::byte> piece =
      memory_.at(static_cast<std::size_t>(rank)).subspan(offset, bytes);
  pinned_.push_back(pin(driver_, piece));
  if (rank == self_) bytes_ += bytes;
  return reinterpret_cast<std::byte*>(driver_.in_kernels(device_, pinned_.back()->address()));
}

}  // namespace khoro
