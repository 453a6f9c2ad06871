// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "base/settings.h"
#include "communicator/gpu_side.h"
#include "rendezvous/membership.h"

namespace khoro {

/// What a rank of a communicator on GPUs brings before it has met the others: its GPU, and memory
/// of it.
class GpuSeat {
 public:
  /// Throws `Error`: invalid_usage where there is no such GPU, out_of_memory.
  GpuSeat(int rank, int ranks, const Settings& settings);

  /// Of the rank's shared memory, at which the others look.
  std::uint64_t area_bytes() const noexcept { return GpuArea::bytes(places_); }
  void fill(std::span<std::byte> area) const;
  /// To be shown beside it. Once.
  Descriptor show() { return std::move(descriptor_); }

  /// Takes part with everybody who was introduced: `areas` of all ranks, by rank, are borrowed
  /// until the result ends. Takes the descriptors of the members' memory. Once.
  std::unique_ptr<GpuSide> join(Membership& membership,
                                const std::vector<std::span<std::byte>>& areas,
                                const Settings& settings);

 private:
  int rank_;
  std::shared_ptr<Driver> driver_;
  int device_;
  gpu::Layout layout_;
  int strands_;
  GpuPlaces places_;
  std::unique_ptr<CudaIpc> ipc_;
  Descriptor descriptor_;
};

}  // namespace khoro
