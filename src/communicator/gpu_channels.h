// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/settings.h"
#include "executor/gpu/device_arena.h"
#include "executor/gpu/device_execution.h"
#include "transport/gpu/cuda_ipc.h"
#include "transport/gpu/places.h"
#include "transport/gpu/staging.h"

namespace khoro {

/// What lies in a rank's shared memory for channels between GPUs: its card, what it found out about
/// the others, and the places through which kernels pass messages where they cannot reach each
/// other's memory.
class GpuArea {
 public:
  explicit GpuArea(std::span<std::byte> memory, int ranks) : memory_(memory), ranks_(ranks) {}
  static std::uint64_t bytes(const GpuPlaces& places) noexcept {
    return head_bytes(places.ranks) + places.bytes();
  }

  GpuCard& card() const noexcept;
  /// Whether the rank reaches the memory of another one's GPU. Set before a communicator is made
  /// anywhere, and constant then.
  std::atomic<std::uint32_t>& reaches(int rank) const noexcept;
  std::span<std::byte> places() const noexcept { return memory_.subspan(head_bytes(ranks_)); }

 private:
  static constexpr std::uint64_t head_bytes(int ranks) noexcept {
    return GpuPlaces::to_page(sizeof(GpuCard) +
                              static_cast<std::uint64_t>(ranks) * sizeof(std::uint32_t));
  }
  std::span<std::byte> memory_;
  int ranks_;
};

/// The shape of channels between GPUs, and where they lie: as the settings say, but narrower where
/// those of `ranks` ranks would else hold more than KHORO_BUFFER_BYTES. The same on all ranks.
/// Throws invalid_argument if they cannot be so narrow.
gpu::Layout gpu_layout_of(const Settings& settings, int ranks);
/// How many strands of programs there are channels for: as the settings say, but fewer where the
/// channels would hold more than half of KHORO_BUFFER_BYTES.
int gpu_strands_of(const Settings& settings, int ranks);
GpuPlaces gpu_places_of(const gpu::Layout& layout, int ranks, int strands) noexcept;

/// The ends of a rank's channels on its GPU, by peer, index and strand. Each is opened when it is
/// first asked for, and kept. Two GPUs that reach each other's memory pass messages there, others
/// through memory of the host. Thread-compatible.
class GpuChannels final : public gpu::DeviceEnds {
 public:
  struct Parts {
    Driver* driver = nullptr;
    int device = 0;
    int rank = 0;
    gpu::Layout layout;  // of the first strand
    int strands = 1;
    GpuPlaces places;
    std::unique_ptr<CudaIpc> ipc;
    std::vector<GpuArea> areas;  // of all ranks, by rank; their memory is borrowed
  };
  /// The ends lie in the arena, which outlives them.
  GpuChannels(Parts parts, gpu::DeviceArena& arena);

  const gpu::Layout& layout() const noexcept override { return parts_.layout; }
  std::uint32_t strands() const noexcept override {
    return static_cast<std::uint32_t>(parts_.strands);
  }
  gpu::End* sender(int peer, std::uint8_t index, std::uint32_t strand) override {
    return end(peer, channel_of(index, strand), true);
  }
  gpu::End* receiver(int peer, std::uint8_t index, std::uint32_t strand) override {
    return end(peer, channel_of(index, strand), false);
  }

  /// By which the rank and `peer` pass messages.
  std::string_view transport_to(int peer) const noexcept;
  /// "cuda_ipc", "cuda_ipc, host": those that this rank uses. Any thread.
  std::string transports() const;
  /// Says at `info` how each of the others is reached.
  void log_transports() const;
  /// Of this rank's memory, on its GPU and pinned. Any thread.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Name = std::tuple<int, int, bool>;
  gpu::End* end(int peer, int channel, bool sends);
  gpu::Layout layout_of(int channel) const noexcept;
  std::byte* place(int peer, int of, std::uint64_t offset, std::uint64_t bytes);
  int channel_of(std::uint8_t index, std::uint32_t strand) const;
  std::vector<int> peers_by(std::string_view transport) const;
  bool reaches(int peer) const noexcept;

  Parts parts_;
  gpu::DeviceArena& arena_;
  Staging staging_;
  std::map<Name, gpu::End*> ends_;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace khoro
