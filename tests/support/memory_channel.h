// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "executor/execution.h"

namespace khoro::test {

/// A channel as slow and obvious as can be: a queue. Both ends live in one thread. It is what other
/// channels are compared with, and it is strict: what the contract forbids throws std::logic_error
/// out of a noexcept function, which ends the test.
class MemoryChannel {
 public:
  struct Shape {
    std::size_t slots = 2;
    std::size_t slot_bytes = 65'536;
    bool references = false;
  };

  explicit MemoryChannel(const Shape& shape) : shape_(shape), sender_(*this), receiver_(*this) {}

  Sender& sender() { return sender_; }
  Receiver& receiver() { return receiver_; }
  bool quiet() const { return queue_.empty() && windows_.empty(); }
  std::uint64_t published() const { return published_; }
  /// What was lent is not there any more.
  void withdraw() { withdrawn_ = true; }

 private:
  struct Item {
    Message message;
    std::vector<std::byte> slot;
    bool put = false;
  };
  struct Lent {
    Window window;
    bool filled = false;
  };

  class SendingEnd final : public Sender {
   public:
    explicit SendingEnd(MemoryChannel& channel) : channel_(channel) {}
    std::byte* try_acquire(std::size_t bytes) noexcept override {
      check(bytes <= channel_.shape_.slot_bytes);
      if (channel_.queue_.size() == channel_.shape_.slots) return nullptr;
      // Fresh memory of exactly the size asked for, so that overruns are found.
      if (room_ == nullptr || bytes != room_->size())
        room_ = std::make_unique<std::vector<std::byte>>(bytes);
      return room_->empty() ? &none_ : room_->data();
    }
    void publish(const MessageHead& head) noexcept override { push(head, nullptr, false); }
    std::size_t payload_limit() const noexcept override { return channel_.shape_.slot_bytes; }
    Lending lending(const std::byte*, std::uint64_t) noexcept override {
      return channel_.shape_.references ? Lending::in_place : Lending::none;
    }
    void publish_reference(const MessageHead& head, const std::byte* data) noexcept override {
      check(channel_.shape_.references);
      push(head, data, false);
    }
    std::uint64_t published() const noexcept override { return channel_.published_; }
    std::uint64_t released() noexcept override { return channel_.released_; }
    const Window* try_window() noexcept override {
      for (Lent& lent : channel_.windows_)
        if (!lent.filled) return &lent.window;
      return nullptr;
    }
    void publish_put(const MessageHead& head) noexcept override {
      for (Lent& lent : channel_.windows_) {
        if (lent.filled) continue;
        lent.filled = true;
        check(head.bytes <= lent.window.bytes);
        return push(head, lent.window.data, true);
      }
      check(false);
    }
    Status status() const noexcept override { return Status::ok; }

   private:
    void push(const MessageHead& head, const std::byte* data, bool put) noexcept {
      check(room_ != nullptr);
      check(data != nullptr || head.bytes == room_->size());
      Item item;
      item.slot = std::move(*room_);
      room_.reset();
      item.message.head = head;
      item.message.by_reference = data != nullptr;
      item.message.data = head.bytes == 0 ? nullptr : data != nullptr ? data : item.slot.data();
      item.put = put;
      channel_.queue_.push_back(std::move(item));
      ++channel_.published_;
    }

    MemoryChannel& channel_;
    std::unique_ptr<std::vector<std::byte>> room_;
    std::byte none_{};
  };

  class ReceivingEnd final : public Receiver {
   public:
    explicit ReceivingEnd(MemoryChannel& channel) : channel_(channel) {}
    Observed try_observe(std::uint32_t digest) noexcept override {
      if (channel_.queue_.empty()) return {};
      const Message& message = channel_.queue_.front().message;
      if (message.head.digest != digest) return {Status::mismatch, nullptr};
      return {Status::ok, &message};
    }
    bool intact() noexcept override { return !channel_.withdrawn_; }
    void release() noexcept override {
      check(!channel_.queue_.empty());
      if (channel_.queue_.front().put) channel_.windows_.pop_front();
      channel_.queue_.pop_front();
      ++channel_.released_;
    }
    std::size_t payload_limit() const noexcept override { return channel_.shape_.slot_bytes; }
    bool try_offer(const Window& window) noexcept override {
      if (channel_.windows_.size() == channel_.shape_.slots) return false;
      Window seen = window;
      if (!channel_.shape_.references) seen.data = nullptr;
      channel_.windows_.push_back({seen, false});
      return true;
    }

   private:
    MemoryChannel& channel_;
  };

  static void check(bool kept) {
    if (!kept) throw std::logic_error("the contract of a channel is broken");
  }

  Shape shape_;
  SendingEnd sender_;
  ReceivingEnd receiver_;
  std::deque<Item> queue_;
  std::deque<Lent> windows_;
  std::uint64_t published_ = 0;
  std::uint64_t released_ = 0;
  bool withdrawn_ = false;
};

/// All channels between the ranks of one thread, opened as they are asked for.
class MemoryNetwork {
 public:
  explicit MemoryNetwork(const MemoryChannel::Shape& shape) : shape_(shape) {}

  MemoryChannel& channel(int from, int to, std::uint8_t index) {
    auto& channel = channels_[{from, to, index}];
    if (!channel) channel = std::make_unique<MemoryChannel>(shape_);
    return *channel;
  }
  /// No message and no window is left anywhere.
  bool quiet() const {
    for (const auto& [name, channel] : channels_)
      if (!channel->quiet()) return false;
    return true;
  }

 private:
  MemoryChannel::Shape shape_;
  std::map<std::tuple<int, int, std::uint8_t>, std::unique_ptr<MemoryChannel>> channels_;
};

/// The ends that one rank opens in a network.
class MemoryEnds final : public Ends {
 public:
  MemoryEnds(MemoryNetwork& network, int rank) : network_(network), rank_(rank) {}
  Sender& sender(int peer, std::uint8_t index) override {
    return network_.channel(rank_, peer, index).sender();
  }
  Receiver& receiver(int peer, std::uint8_t index) override {
    return network_.channel(peer, rank_, index).receiver();
  }

 private:
  MemoryNetwork& network_;
  int rank_;
};

}  // namespace khoro::test
