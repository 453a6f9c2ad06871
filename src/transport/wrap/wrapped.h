// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace khoro::wrap {

/// A sender that does what another one does. What wraps a channel overrides what it changes.
class WrappedSender : public Sender {
 public:
  explicit WrappedSender(std::unique_ptr<Sender> inner) : inner_(std::move(inner)) {}

  std::byte* try_acquire(std::size_t bytes) noexcept override { return inner_->try_acquire(bytes); }
  void publish(const MessageHead& head) noexcept override { inner_->publish(head); }
  std::size_t payload_limit() const noexcept override { return inner_->payload_limit(); }
  void use_all_slots() noexcept override { inner_->use_all_slots(); }
  Lending lending(const std::byte* data, std::uint64_t bytes) noexcept override {
    return inner_->lending(data, bytes);
  }
  void publish_reference(const MessageHead& head, const std::byte* data) noexcept override {
    inner_->publish_reference(head, data);
  }
  std::uint64_t published() const noexcept override { return inner_->published(); }
  std::uint64_t released() noexcept override { return inner_->released(); }
  // What a wrap makes of releases holds for the memory that comes back with them.
  std::uint64_t returned() noexcept override {
    return inner_->queues() ? inner_->returned() : released();
  }
  bool queues() const noexcept override { return inner_->queues(); }
  bool flushed() noexcept override { return inner_->flushed(); }
  const Window* try_window() noexcept override { return inner_->try_window(); }
  void publish_put(const MessageHead& head) noexcept override { inner_->publish_put(head); }
  Status status() const noexcept override { return inner_->status(); }

 protected:
  std::unique_ptr<Sender> inner_;
};

/// Likewise for a receiver.
class WrappedReceiver : public Receiver {
 public:
  explicit WrappedReceiver(std::unique_ptr<Receiver> inner) : inner_(std::move(inner)) {}

  std::size_t payload_limit() const noexcept override { return inner_->payload_limit(); }
  Observed try_observe(std::uint32_t digest) noexcept override {
    return inner_->try_observe(digest);
  }
  bool intact() noexcept override { return inner_->intact(); }
  void release() noexcept override { inner_->release(); }
  bool aims() const noexcept override { return inner_->aims(); }
  void aim(const MessageHead& expected, std::byte* data) noexcept override {
    inner_->aim(expected, data);
  }
  bool try_offer(const Window& window) noexcept override { return inner_->try_offer(window); }

 protected:
  std::unique_ptr<Receiver> inner_;
};

/// A transport that opens the ends of another one and puts something around them.
class WrappedTransport : public Transport {
 public:
  explicit WrappedTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  std::string_view name() const noexcept override { return inner_->name(); }
  std::optional<Route> reach(const Endpoint& peer) const override { return inner_->reach(peer); }
  std::unique_ptr<Sender> open_sender(const ChannelName& name, ChannelShape shape) override {
    return around(inner_->open_sender(name, shape), name);
  }
  std::unique_ptr<Receiver> open_receiver(const ChannelName& name, ChannelShape shape) override {
    return around(inner_->open_receiver(name, shape), name);
  }
  int descriptor() const noexcept override { return inner_->descriptor(); }
  void drain(System& system, Duration most) noexcept override { inner_->drain(system, most); }
  bool withdraw() noexcept override { return inner_->withdraw(); }
  std::uint64_t bytes_held() const noexcept override { return inner_->bytes_held(); }
  std::uint64_t bytes_sent() const noexcept override { return inner_->bytes_sent(); }
  std::vector<std::uint64_t> bytes_by_stripe() const override { return inner_->bytes_by_stripe(); }

 protected:
  virtual std::unique_ptr<Sender> around(std::unique_ptr<Sender> inner,
                                         const ChannelName& name) = 0;
  virtual std::unique_ptr<Receiver> around(std::unique_ptr<Receiver> inner,
                                           const ChannelName& name) = 0;

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace khoro::wrap
