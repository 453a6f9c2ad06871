// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/shm.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/shared_memory.h"
#include "transport/claims.h"
#include "transport/shm/ends.h"
#include "transport/shm/layout.h"
#include "transport/shm/planted_race.h"

namespace khoro {
namespace shm {
namespace {

constexpr std::uint64_t directory_bytes(std::uint64_t ranks) noexcept {
  return to_pages(indices * ranks * sizeof(std::uint64_t));
}

/// What all channels of a rank may hold before the first message above ChannelShape::part_most, if
/// two are enough for each, and how many of them a peer may open that uses no second lane.
constexpr std::uint64_t bytes_of_short_messages = 3584 * 1024;
constexpr std::uint64_t channels_of_short_messages = 3;

class Shm final : public Transport {
 public:
  explicit Shm(const TransportSetup& setup) : setup_(setup), free_(directory_bytes(ranks())) {
    if (setup_.rank < 0 || static_cast<std::uint64_t>(setup_.rank) >= ranks() ||
        setup_.area_offset % page_bytes != 0 || setup_.area_bytes < free_) {
      throw Error(Code::internal_error, "shm: rank or channel area is not usable");
    }
    // Now, because descriptors are closed soon.
    const std::uint64_t bytes = setup_.area_offset + setup_.area_bytes;
    for (const Endpoint& peer : setup_.endpoints) {
      Mapping& mapping = mappings_.emplace_back();
      if (peer.memory >= 0 || peer.rank == setup_.rank)
        mapping =
            Mapping::open(peer.memory, bytes, fmt::format("shared memory of rank {}", peer.rank));
    }
  }

  std::string_view name() const noexcept override { return "shm"; }

  std::optional<Route> reach(const Endpoint& peer) const override {
    if (peer.memory < 0) return std::nullopt;
    return Route{.bytes_per_second = 10e9, .latency_seconds = 100e-9};
  }

  std::unique_ptr<Sender> open_sender(const ChannelName& name, ChannelShape shape) override {
    check(name, shape);
    const std::span<std::byte> area = area_of(name.peer);
    senders_.claim(name);
    auto sender = std::make_unique<ShmSender>(end_setup(name, shape), area,
                                              entry(area, setup_.rank, name.index));
    const std::lock_guard lock(mutex_);
    opened_senders_.push_back(sender.get());
    return sender;
  }

  std::unique_ptr<Receiver> open_receiver(const ChannelName& name, ChannelShape shape) override {
    check(name, shape);
    const std::span<std::byte> area = area_of(setup_.rank);
    const std::uint64_t bytes = Block::bytes(shape);
    if (area.size() - free_ < bytes) {
      throw Error(
          Code::out_of_memory,
          fmt::format("shm: no room for a channel from rank {}: it needs {} bytes, {} of {} "
                      "are free; use fewer or smaller slots",
                      name.peer, bytes, area.size() - free_.load(), area.size()));
    }
    receivers_.claim(name);
    const std::uint64_t offset = free_.fetch_add(bytes);
    const Block block = Block::at(area.data() + offset, shape);
    block.info->slots.store(shape.slots, std::memory_order_relaxed);
    block.info->slot_bytes.store(shape.slot_bytes, std::memory_order_relaxed);
    block.info->parts_bytes.store(shape.parts_bytes, std::memory_order_relaxed);
    const EndSetup setup = end_setup(name, shape);
    block.info->sees_arena.store(!setup.peer_arena.empty(), std::memory_order_relaxed);
    block.info->reads_rest.store(static_cast<bool>(setup.peer_memory), std::memory_order_relaxed);
    auto receiver = std::make_unique<ShmReceiver>(setup, block);
    opened_receivers_.push_back(receiver.get());
    // Pairs with attach() in the sender, which may sleep until the channel is there.
    entry(area, name.peer, name.index).exchange(offset, std::memory_order_seq_cst);
    endpoint(name.peer).doorbell.ring();
    return receiver;
  }

  bool withdraw() noexcept override {
    bool moved = true;
    for (ShmSender* sender : opened_senders_) sender->withdraw();
    for (ShmReceiver* receiver : opened_receivers_) moved &= receiver->move_windows();
    return moved;
  }

  std::uint64_t bytes_held() const noexcept override {
    return resident_bytes(area_of(setup_.rank).first(free_));
  }

  std::uint64_t bytes_sent() const noexcept override {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const ShmSender* sender : opened_senders_) bytes += sender->bytes_sent();
    return bytes;
  }

 private:
  std::uint64_t ranks() const noexcept { return setup_.endpoints.size(); }
  const Endpoint& endpoint(int rank) const noexcept {
    return setup_.endpoints[static_cast<std::size_t>(rank)];
  }

  void check(const ChannelName& name, ChannelShape shape) const {
    if (name.peer < 0 || static_cast<std::uint64_t>(name.peer) >= ranks() ||
        !mappings_[static_cast<std::size_t>(name.peer)]) {
      throw Error(Code::internal_error, fmt::format("shm: there is no rank {}", name.peer));
    }
    if (shape.slots < 1 || shape.slots > max_slots || shape.slot_bytes < inline_bytes ||
        shape.slot_bytes > max_slot_bytes || shape.parts_bytes < 2 * ChannelShape::part_most ||
        shape.parts_bytes % ChannelShape::part_most != 0) {
      throw Error(
          Code::invalid_argument,
          fmt::format("shm: a channel cannot have {} slots of {} bytes; legal are 1..{} of "
                      "{}..{}",
                      shape.slots, shape.slot_bytes, max_slots, inline_bytes, max_slot_bytes));
    }
  }

  EndSetup end_setup(const ChannelName& name, ChannelShape shape) {
    const Endpoint& peer = endpoint(name.peer);
    return {shape,
            peer.doorbell,
            peer.process == endpoint(setup_.rank).process,
            &partners_[{name.peer, name.index}],
            setup_.arena,
            peer.arena,
            peer.private_memory};
  }

  std::span<std::byte> area_of(int rank) const noexcept {
    const Mapping& mapping = mappings_[static_cast<std::size_t>(rank)];
    return mapping.bytes().subspan(setup_.area_offset, setup_.area_bytes);
  }

  std::atomic<std::uint64_t>& entry(std::span<std::byte> area, int source,
                                    std::uint8_t index) const noexcept {
    // By index first: most channels have one of few indices, so few pages are touched.
    const std::uint64_t at = index * ranks() + static_cast<std::uint64_t>(source);
    return reinterpret_cast<std::atomic<std::uint64_t>*>(area.data())[at];
  }

  TransportSetup setup_;
  std::vector<Mapping> mappings_;    // by rank
  std::atomic<std::uint64_t> free_;  // what lies below is in use
  mutable std::mutex mutex_;         // of the senders, which statistics look at
  std::vector<ShmSender*> opened_senders_;
  std::vector<ShmReceiver*> opened_receivers_;
  Claims senders_{"shm", "sender"};
  Claims receivers_{"shm", "receiver"};
  std::map<std::pair<int, int>, Partner> partners_;  // by peer and index
};

}  // namespace

std::uint64_t area_bytes(int ranks, int channels_per_rank, ChannelShape shape) {
  const auto count = static_cast<std::uint64_t>(ranks);
  return directory_bytes(count) +
         count * static_cast<std::uint64_t>(channels_per_rank) * Block::bytes(shape);
}

std::uint32_t parts_bytes(int ranks, std::uint32_t slots) noexcept {
  constexpr std::uint64_t unit = ChannelShape::part_most;
  const auto peers = static_cast<std::uint64_t>(std::max(ranks - 1, 1));
  const std::uint64_t lines = lines_of(slots);
  const std::uint64_t share = bytes_of_short_messages / (channels_of_short_messages * peers);
  const std::uint64_t beside = std::min(share, (lines + 1) * page_bytes);  // small bodies and lines
  const std::uint64_t most = std::max(lines, std::uint64_t{2});
  return static_cast<std::uint32_t>(std::clamp((share - beside) / unit, std::uint64_t{2}, most) *
                                    unit);
}

}  // namespace shm

std::unique_ptr<Transport> make_shm(const TransportSetup& setup) {
  auto made = std::make_unique<shm::Shm>(setup);
#ifdef KHORO_TEST_SWITCHES
  return shm::with_planted_race(std::move(made));
#else
  return made;
#endif
}

}  // namespace khoro
