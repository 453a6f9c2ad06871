// SPDX-License-Identifier: Apache-2.0
#include "transport/wrap/death.h"

#include <utility>

#include "transport/wrap/wrapped.h"

namespace khoro {
namespace wrap {
namespace {

class MortalSender final : public WrappedSender {
 public:
  MortalSender(std::unique_ptr<Sender> inner, Fate& fate)
      : WrappedSender(std::move(inner)), fate_(fate) {}

  std::byte* try_acquire(std::size_t bytes) noexcept override {
    return fate_.dead() ? nullptr : inner_->try_acquire(bytes);
  }
  void publish(const MessageHead& head) noexcept override {
    if (fate_.live_on()) inner_->publish(head);
  }
  void publish_reference(const MessageHead& head, const std::byte* data) noexcept override {
    if (fate_.live_on()) inner_->publish_reference(head, data);
  }
  std::uint64_t released() noexcept override {
    if (!fate_.dead()) released_ = inner_->released();
    return released_;
  }
  std::uint64_t returned() noexcept override {
    if (!fate_.dead()) returned_ = WrappedSender::returned();
    return returned_;
  }
  bool flushed() noexcept override { return !fate_.dead() && inner_->flushed(); }
  const Window* try_window() noexcept override {
    return fate_.dead() ? nullptr : inner_->try_window();
  }
  void publish_put(const MessageHead& head) noexcept override {
    if (fate_.live_on()) inner_->publish_put(head);
  }

 private:
  Fate& fate_;
  std::uint64_t released_ = 0;
  std::uint64_t returned_ = 0;
};

class MortalReceiver final : public WrappedReceiver {
 public:
  MortalReceiver(std::unique_ptr<Receiver> inner, Fate& fate)
      : WrappedReceiver(std::move(inner)), fate_(fate) {}

  Observed try_observe(std::uint32_t digest) noexcept override {
    if (fate_.dead()) return {};
    const Observed observed = inner_->try_observe(digest);
    if (observed.message == nullptr || observed_) return observed;
    observed_ = fate_.live_on();
    return observed_ ? observed : Observed{};
  }
  void release() noexcept override {
    observed_ = false;
    if (fate_.live_on()) inner_->release();
  }
  bool try_offer(const Window& window) noexcept override {
    return fate_.live_on() && inner_->try_offer(window);
  }

 private:
  Fate& fate_;
  bool observed_ = false;
};

class Death final : public WrappedTransport {
 public:
  Death(std::unique_ptr<Transport> inner, Fate& fate)
      : WrappedTransport(std::move(inner)), fate_(fate) {}

 private:
  std::unique_ptr<Sender> around(std::unique_ptr<Sender> inner, const ChannelName&) override {
    return std::make_unique<MortalSender>(std::move(inner), fate_);
  }
  std::unique_ptr<Receiver> around(std::unique_ptr<Receiver> inner, const ChannelName&) override {
    return std::make_unique<MortalReceiver>(std::move(inner), fate_);
  }

  Fate& fate_;
};

}  // namespace
}  // namespace wrap

std::unique_ptr<Transport> make_death(std::unique_ptr<Transport> inner, Fate& fate) {
  return std::make_unique<wrap::Death>(std::move(inner), fate);
}

}  // namespace khoro
