// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_channels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "communicator/channel_table.h"
#include "communicator/plan_table.h"

namespace khoro {
namespace {

/// Channels from one rank to another: of the first strand those of plans and that of messages, and
/// then of each strand the same, but fewer of plans.
constexpr int lanes_with_room = 4;
constexpr int first_channels = lanes_with_room + 1;
constexpr int later_channels = gpu::DeviceEnds::channels_of_strand + 1;

/// With fewer slots: strands run side by side, so that each need not have as much under way.
gpu::Layout layout_of_strands(gpu::Layout layout) noexcept {
  constexpr std::uint32_t least = gpu::DeviceEnds::slots_of_strand;
  layout.slots = std::min(layout.slots, std::max(least, layout.slots / 4));
  return layout;
}

gpu::Layout widest_layout_of(const Settings& settings) {
  gpu::Layout layout;
  layout.slots = static_cast<std::uint32_t>(settings.slots);
  layout.slot_bytes = static_cast<std::uint32_t>(settings.slot_bytes);
  layout.flagged_bytes =
      std::min(static_cast<std::uint32_t>(settings.flagged_bytes), layout.slot_bytes);
  return layout;
}

std::vector<std::span<std::byte>> places_in(const std::vector<GpuArea>& areas) {
  std::vector<std::span<std::byte>> all;
  for (const GpuArea& area : areas) all.push_back(area.places());
  return all;
}

}  // namespace

GpuCard& GpuArea::card() const noexcept {
  return *std::launder(reinterpret_cast<GpuCard*>(memory_.data()));
}

std::atomic<std::uint32_t>& GpuArea::reaches(int rank) const noexcept {
  return std::launder(
      reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.data() + sizeof(GpuCard)))[rank];
}

gpu::Layout gpu_layout_of(const Settings& settings, int ranks) {
  gpu::Layout layout = widest_layout_of(settings);
  const int strands = gpu_strands_of(settings, ranks);
  fit_slots(layout.slot_bytes, settings, ranks, "GPUs",
            [&] { return gpu_places_of(layout, ranks, strands).bytes(); });
  return layout;
}

int gpu_strands_of(const Settings& settings, int ranks) {
  const gpu::Layout layout = widest_layout_of(settings);
  auto strands = static_cast<int>(settings.gpu_strands);
  if (strands == 0) strands = settings.memory == "virtual" ? 1 : 16;
  while (strands > 1 && gpu_places_of(layout, ranks, strands).bytes() >
                            static_cast<std::uint64_t>(settings.buffer_bytes) / 2)
    --strands;
  return strands;
}

GpuPlaces gpu_places_of(const gpu::Layout& layout, int ranks, int strands) noexcept {
  const auto kind = [](int channels, const gpu::Layout& shape) -> GpuPlaces::Kind {
    return {channels, GpuPlaces::to_page(shape.receiver_bytes()),
            GpuPlaces::to_page(shape.sender_bytes())};
  };
  return {ranks, kind(first_channels, layout),
          kind((strands - 1) * later_channels, layout_of_strands(layout))};
}

GpuChannels::GpuChannels(Parts parts, gpu::DeviceArena& arena)
    : parts_(std::move(parts)),
      arena_(arena),
      staging_(*parts_.driver, parts_.device, parts_.rank, places_in(parts_.areas)),
      bytes_(parts_.ipc->bytes()) {}

bool GpuChannels::reaches(int peer) const noexcept {
  const auto said = [&](int who, int of) {
    return parts_.areas[static_cast<std::size_t>(who)].reaches(of).load(
               std::memory_order_acquire) == 1;
  };
  return said(parts_.rank, peer) && said(peer, parts_.rank);
}

std::string_view GpuChannels::transport_to(int peer) const noexcept {
  return reaches(peer) ? CudaIpc::name : Staging::name;
}

std::vector<int> GpuChannels::peers_by(std::string_view transport) const {
  std::vector<int> peers;
  for (int peer = 0; peer < parts_.places.ranks; ++peer)
    if (peer != parts_.rank && transport_to(peer) == transport) peers.push_back(peer);
  return peers;
}

std::string GpuChannels::transports() const {
  std::string names;
  for (const std::string_view name : {CudaIpc::name, Staging::name})
    if (!peers_by(name).empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return names;
}

void GpuChannels::log_transports() const {
  if (!logs(LogLevel::info)) return;
  for (const std::string_view name : {CudaIpc::name, Staging::name}) {
    const std::vector<int> peers = peers_by(name);
    if (!peers.empty())
      log(LogLevel::info, "rank {}: on GPU {} at {}: {} to {} {}", parts_.rank, parts_.device,
          parts_.driver->facts(parts_.device).bus_id, name, peers.size() == 1 ? "rank" : "ranks",
          fmt::join(peers, ", "));
  }
}

gpu::Layout GpuChannels::layout_of(int channel) const noexcept {
  return channel < first_channels ? parts_.layout : layout_of_strands(parts_.layout);
}

int GpuChannels::channel_of(std::uint8_t index, std::uint32_t strand) const {
  const int lanes = strand == 0 ? lanes_with_room : channels_of_strand;
  const int before =
      strand == 0 ? 0 : first_channels + static_cast<int>(strand - 1) * later_channels;
  if (index == plain_messages) return before + lanes;
  if (index < lanes) return before + index;
  throw Error(Code::invalid_usage,
              fmt::format("a plan with more than {} channels from one GPU to another", lanes));
}

/// Where kernels find what rank `of`, this one or the peer, gives for a channel of the two.
std::byte* GpuChannels::place(int peer, int of, std::uint64_t offset, std::uint64_t bytes) {
  if (reaches(peer)) return parts_.ipc->place(of == parts_.rank ? -1 : of, offset);
  std::byte* const found = staging_.place(of, offset, bytes);
  bytes_.store(parts_.ipc->bytes() + staging_.bytes(), std::memory_order_relaxed);
  return found;
}

gpu::End* GpuChannels::end(int peer, int channel, bool sends) {
  const auto known = ends_.find({peer, channel, sends});
  if (known != ends_.end()) return known->second;
  const GpuPlaces& places = parts_.places;
  const int receiver = sends ? peer : parts_.rank, sender = sends ? parts_.rank : peer;
  gpu::End end = gpu::end_at(layout_of(channel),
                             place(peer, receiver, places.receiver(receiver, sender, channel),
                                   places.kind(channel).at_receiver),
                             place(peer, sender, places.sender(sender, receiver, channel),
                                   places.kind(channel).at_sender));
  if (reaches(peer)) end.peer_device = only(parts_.ipc->device_beside(peer));

  const gpu::DeviceArena::Piece piece = arena_.take(sizeof end);
  arena_.write(piece.address, std::as_bytes(std::span(&end, 1)));
  auto* const there = reinterpret_cast<gpu::End*>(piece.in_kernels);
  ends_.emplace(Name{peer, channel, sends}, there);
  return there;
}

}  // namespace khoro
