// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_seat.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "communicator/gpus.h"
#include "communicator/process.h"

namespace khoro {
namespace {

/// The chosen GPU, else they are dealt out in turn to the ranks of a machine.
int device_of(int rank, const Settings& settings, const Driver& driver) {
  const int devices = driver.devices();
  if (devices == 0)
    throw Error(Code::invalid_usage,
                fmt::format("KHORO_MEMORY={}: there is no GPU", settings.memory));
  if (settings.device >= devices)
    throw Error(Code::invalid_argument, fmt::format("KHORO_DEVICE={}: there are {} GPUs, 0 to {}",
                                                    settings.device, devices, devices - 1));
  if (settings.device >= 0) return static_cast<int>(settings.device);
  const bool alone = settings.local_rank >= 0 && settings.threads == 1;
  return (alone ? static_cast<int>(settings.local_rank) : rank) % devices;
}

}  // namespace

GpuSeat::GpuSeat(int rank, int ranks, const Settings& settings)
    : rank_(rank),
      driver_(gpus_of_process(settings.memory)),
      device_(device_of(rank, settings, *driver_)),
      layout_(gpu_layout_of(settings, ranks)),
      strands_(gpu_strands_of(settings, ranks)),
      places_(gpu_places_of(layout_, ranks, strands_)),
      ipc_(std::make_unique<CudaIpc>(*driver_, device_, places_.bytes())),
      descriptor_(ipc_->descriptor()) {}

void GpuSeat::fill(std::span<std::byte> area) const {
  new (area.data()) GpuCard(ipc_->card());
  const GpuArea mine(area, places_.ranks);
  for (int rank = 0; rank < places_.ranks; ++rank)
    new (&mine.reaches(rank)) std::atomic<std::uint32_t>(0);
}

std::unique_ptr<GpuSide> GpuSeat::join(Membership& membership,
                                       const std::vector<std::span<std::byte>>& areas,
                                       const Settings& settings) {
  GpuChannels::Parts parts{driver_.get(), device_, rank_, layout_, strands_, places_, {}, {}};
  for (const std::span<std::byte> area : areas) parts.areas.emplace_back(area, places_.ranks);
  const GpuArea& mine = parts.areas[static_cast<std::size_t>(rank_)];
  int neighbours = 0;  // ranks on the same GPU, this one among them
  for (Introduction& member : membership.members) {
    const GpuCard card = parts.areas[static_cast<std::size_t>(member.rank)].card();
    neighbours += card.bus_id == mine.card().bus_id;
    if (member.rank == rank_) continue;
    const bool same_process = member.process == Process::self().number();
    const bool reached =
        settings.peer_access == "auto" &&
        ipc_->open(member.rank, rank_, card, same_process, std::move(member.gpu_memory));
    mine.reaches(member.rank).store(reached, std::memory_order_release);
  }
  parts.ipc = std::move(ipc_);
  return std::make_unique<GpuSide>(
      GpuSide::Parts{driver_, device_, std::move(parts), membership.communicator, neighbours},
      settings, rank_, places_.ranks);
}

}  // namespace khoro
