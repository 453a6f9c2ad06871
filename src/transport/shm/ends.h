// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/doorbell.h"
#include "transport/channel.h"
#include "transport/shm/layout.h"

namespace khoro::shm {

/// What both ends of a channel know.
struct EndSetup {
  ChannelShape shape;
  Doorbell peer;
  /// Both ranks share an address space: addresses may be handed over.
  bool same_process = false;
  Partner* partner = nullptr;  // the transport's
  /// Between processes: what the peer can see of this one's memory, and this one of the peer's.
  Arena* arena = nullptr;
  std::span<std::byte> peer_arena = {};
  PeerMemory peer_memory = {};
};

/// Where `data` is for a peer that has the arena mapped; nothing if it is not there.
inline std::optional<std::uint64_t> shared_place(const EndSetup& setup, const std::byte* data,
                                                 std::uint64_t bytes) noexcept {
  if (setup.same_process) return reinterpret_cast<std::uintptr_t>(data);
  if (setup.arena == nullptr) return std::nullopt;
  return setup.arena->offset_of(data, bytes);
}

/// The memory that a peer means by `place`; null if there is none.
inline std::byte* shared_data(const EndSetup& setup, std::uint64_t place,
                              std::uint64_t bytes) noexcept {
  if (setup.same_process) return reinterpret_cast<std::byte*>(place);
  const std::uint64_t size = setup.peer_arena.size();
  if (place >= size || bytes > size - place) return nullptr;
  return setup.peer_arena.data() + place;
}

/// Sends into a block of the peer's memory, as soon as the peer has opened it.
class ShmSender final : public Sender {
 public:
  /// `area` is the channel area of the peer, `entry` this channel's word in its directory.
  ShmSender(const EndSetup& setup, std::span<std::byte> area,
            const std::atomic<std::uint64_t>& entry);

  std::byte* try_acquire(std::size_t bytes) noexcept override;
  void publish(const MessageHead& head) noexcept override;
  std::size_t payload_limit() const noexcept override { return setup_.shape.slot_bytes; }
  void use_all_slots() noexcept override { wide_ = true; }
  Lending lending(const std::byte* data, std::uint64_t bytes) noexcept override;
  void publish_reference(const MessageHead& head, const std::byte* data) noexcept override;
  std::uint64_t published() const noexcept override {
    return published_.load(std::memory_order_relaxed);
  }
  std::uint64_t released() noexcept override;
  const Window* try_window() noexcept override;
  void publish_put(const MessageHead& head) noexcept override;
  Status status() const noexcept override { return status_; }

  /// See Transport::withdraw().
  void withdraw() noexcept;

  /// What it has written: a line for each message, and the bodies. Any thread.
  std::uint64_t bytes_sent() const noexcept {
    return published() * sizeof(MessageLine) + body_bytes_.load(std::memory_order_relaxed);
  }

 private:
  struct Part {
    std::uint64_t number = 0;  // of the message
    std::uint64_t first = 0;
    std::uint64_t bytes = 0;
  };

  bool attach() noexcept;
  void put_into_slots() noexcept;
  void fail() noexcept;
  bool find_credit() noexcept;
  void hear_releases() noexcept;
  std::byte* find_part(std::size_t bytes) noexcept;
  std::optional<std::uint64_t> find_room(std::uint64_t size) noexcept;
  bool is_free(std::uint64_t first, std::uint64_t size) noexcept;
  void publish(const MessageHead& head, Meta meta) noexcept;

  EndSetup setup_;
  std::span<std::byte> area_;
  const std::atomic<std::uint64_t>& entry_;
  Block block_;
  // Written by one thread, with loads and stores of their own; atomic for who reads statistics.
  std::atomic<std::uint64_t> published_{0};
  std::uint64_t acquirable_ = 0;  // messages up to this number have a slot
  std::uint64_t released_ = 0;
  std::uint32_t position_ = 0;  // of the next message's line
  Place place_ = Place::line;   // of the acquired room
  bool peer_sees_arena_ = false;
  bool peer_reads_rest_ = false;
  struct Lent {
    const std::byte* data = nullptr;
    std::uint64_t number = 0;  // of the message
  };
  std::vector<Lent> elsewhere_;  // by line: what was lent of private memory last
  std::uint64_t lent_ = 0;       // the last message that was a reference
  bool wide_ = false;
  // Message k that lies in the parts at k mod lines.
  std::vector<Part> parts_;
  std::uint64_t parts_sent_ = 0;
  std::uint64_t parts_released_ = 0;
  Part next_part_;  // of the acquired room
  Status status_ = Status::ok;
  std::atomic<std::uint64_t> body_bytes_{0};
  std::uint64_t windows_filled_ = 0;
  Window window_;
  bool window_open_ = false;
};

/// Receives from a block of this rank's own memory.
class ShmReceiver final : public Receiver {
 public:
  ShmReceiver(const EndSetup& setup, const Block& block);

  Observed try_observe(std::uint32_t digest) noexcept override;
  bool intact() noexcept override;
  void release() noexcept override;
  bool aims() const noexcept override { return static_cast<bool>(setup_.peer_memory); }
  void aim(const MessageHead& expected, std::byte* data) noexcept override;
  std::size_t payload_limit() const noexcept override { return setup_.shape.slot_bytes; }
  bool try_offer(const Window& window) noexcept override;

  /// See Transport::withdraw().
  bool move_windows() noexcept;

 private:
  /// A window as it was offered; `reachable`: the sender may have filled it where it is.
  struct Offered {
    Window window;
    bool reachable = false;
  };

  bool decode(MessageLine& line, std::uint32_t digest) noexcept;
  bool place(MessageLine& line, const Meta& meta) noexcept;
  bool fetch(MessageLine& line, const Meta& meta) noexcept;
  void report() noexcept;

  EndSetup setup_;
  Block block_;
  std::uint64_t released_ = 0;
  std::uint64_t reported_ = 0;
  std::uint32_t position_ = 0;
  std::uint32_t batch_;
  Message message_;
  bool observed_ = false;  // message_ is the one at position_
  bool put_ = false;       // ... and fills the oldest window
  bool fetched_ = false;   // ... and was lent, though it lies here
  bool part_ = false;      // ... and lies in the parts
  MessageHead expected_;
  std::byte* aimed_ = nullptr;  // where the next message is to be fetched to, if it is that
  Status status_ = Status::ok;
  std::vector<Offered> windows_;  // window k at k mod D
  std::uint64_t offered_ = 0;
  std::uint64_t filled_ = 0;
};

}  // namespace khoro::shm
