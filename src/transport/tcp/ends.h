// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/aligned.h"
#include "transport/channel.h"
#include "transport/tcp/connection.h"

namespace khoro::tcp {

/// Memory for the payloads of the messages of an end that are under way, each with its header in
/// front. It begins anew whenever nothing is under way, so that a channel in step uses one place,
/// which stays in the cache.
class Slots {
 public:
  /// Throws bad_alloc.
  explicit Slots(ChannelShape shape);

  std::byte* at(std::uint32_t place) noexcept {
    return memory_.get() + place * stride_ + header_room;
  }
  std::uint32_t next(std::uint32_t place) const noexcept {
    return place + 1 == lines_ ? 0 : place + 1;
  }
  /// For statistics: the place was used.
  void use(std::uint32_t place) noexcept {
    if (place >= used_.load(std::memory_order_relaxed))
      used_.store(place + 1, std::memory_order_relaxed);
  }
  /// Any thread.
  std::uint64_t bytes_used() const noexcept {
    return used_.load(std::memory_order_relaxed) * stride_;
  }

 private:
  static constexpr std::size_t header_room = line_bytes;

  std::uint32_t lines_;
  std::size_t stride_;
  AlignedBytes memory_;
  std::atomic<std::uint32_t> used_{0};
};

/// Sends from slots of its own, or straight from the memory of the caller.
class TcpSender final : public Sender {
 public:
  TcpSender(Connection& connection, std::uint8_t index, ChannelShape shape);
  ~TcpSender() override { connection_.close(index_, *this); }

  std::byte* try_acquire(std::size_t bytes) noexcept override;
  void publish(const MessageHead& head) noexcept override;
  std::size_t payload_limit() const noexcept override { return shape_.slot_bytes; }
  /// What is lent is sent from where it lies.
  Lending lending(const std::byte*, std::uint64_t) noexcept override { return Lending::sent; }
  void publish_reference(const MessageHead& head, const std::byte* data) noexcept override;
  std::uint64_t published() const noexcept override { return published_; }
  std::uint64_t released() noexcept override;
  std::uint64_t returned() noexcept override;
  bool queues() const noexcept override { return true; }
  bool flushed() noexcept override;
  const Window* try_window() noexcept override;
  void publish_put(const MessageHead& head) noexcept override;
  Status status() const noexcept override {
    return status_ != Status::ok ? status_ : connection_.sending_status();
  }

  // What the connection has heard. False: no correct peer says that.
  bool take_releases(std::uint32_t low_bits) noexcept;
  bool take_offer(std::uint64_t bytes) noexcept;
  void take_open(ChannelShape shape) noexcept;

  const Slots& slots() const noexcept { return slots_; }

 private:
  bool find_credit() noexcept;
  void send(FrameKind kind, const MessageHead& head, const std::byte* data) noexcept;

  Connection& connection_;
  std::uint8_t index_;
  ChannelShape shape_;
  Slots slots_;
  Ledger ledger_;
  bool open_ = false;  // the receiver is there
  Status status_ = Status::ok;
  std::uint64_t published_ = 0;
  std::uint64_t released_ = 0;
  std::uint32_t place_ = 0;            // of the next message
  std::vector<std::uint64_t> offers_;  // bytes of window k at k mod D
  std::uint64_t offered_ = 0;
  std::uint64_t windows_filled_ = 0;
  Window window_;
};

/// Receives into slots of its own, or straight into windows and where the caller wants a message.
class TcpReceiver final : public Receiver {
 public:
  TcpReceiver(Connection& connection, std::uint8_t index, ChannelShape shape);
  ~TcpReceiver() override { connection_.close(index_, *this); }

  Observed try_observe(std::uint32_t digest) noexcept override;
  void release() noexcept override;
  std::size_t payload_limit() const noexcept override { return shape_.slot_bytes; }
  bool try_offer(const Window& window) noexcept override;
  bool aims() const noexcept override { return true; }
  void aim(const MessageHead& expected, std::byte* data) noexcept override {
    expected_ = expected;
    aimed_ = arrived_ == released_ ? data : nullptr;  // else what is observed next has come
  }

  /// The oldest message that was not released is there.
  bool has_message() const noexcept {
    return arrived_ != released_ && lines_[released_ % lines_.size()].missing == 0;
  }
  std::uint64_t released() const noexcept { return released_; }
  /// Messages that go the other way tell of all releases.
  void releases_told() noexcept { reported_ = released_; }

  // What the connection has heard.

  /// A message begins: where its payload belongs, and in how many parts it comes. Null data in case
  /// it has none; false: no correct peer sends it.
  bool begin(const Header& frame, std::size_t parts, std::byte*& to) noexcept;
  void part_landed(std::uint64_t number) noexcept {
    --lines_[(number - 1) % lines_.size()].missing;
  }
  std::uint64_t arrived() const noexcept { return arrived_; }
  /// The sender is there.
  void take_attach() noexcept;

  const Slots& slots() const noexcept { return slots_; }

 private:
  struct Line {
    Message message;
    bool put = false;
    std::size_t missing = 0;  // parts
  };

  void tell_offer(const Window& window) noexcept;
  bool is_expected(const Header& frame) const noexcept;

  Connection& connection_;
  std::uint8_t index_;
  ChannelShape shape_;
  Slots slots_;
  std::vector<Line> lines_;    // message k at (k - 1) mod its size
  std::uint64_t arrived_ = 0;  // begun, in truth
  std::uint64_t released_ = 0;
  std::uint64_t reported_ = 0;
  std::uint32_t place_ = 0;      // of the last message
  MessageHead expected_;         // the next, if ...
  std::byte* aimed_ = nullptr;   // ... this is not null
  std::vector<Window> windows_;  // window k at k mod D
  std::uint64_t offered_ = 0;
  std::uint64_t filled_ = 0;  // by messages that have begun
  std::uint64_t taken_ = 0;   // filled and released
  bool attached_ = false;
};

}  // namespace khoro::tcp
