// SPDX-License-Identifier: Apache-2.0
#include "transport/wrap/trace.h"

#include <utility>

#include "transport/wrap/wrapped.h"

namespace khoro {
namespace wrap {
namespace {

using Kind = TraceEvent::Kind;

class TracedSender final : public WrappedSender {
 public:
  TracedSender(std::unique_ptr<Sender> inner, const ChannelName& name, const TraceSink& sink)
      : WrappedSender(std::move(inner)), name_(name), sink_(sink) {}

  std::byte* try_acquire(std::size_t bytes) noexcept override {
    std::byte* room = inner_->try_acquire(bytes);
    if (room != nullptr && !std::exchange(acquired_, true)) tell(Kind::acquire, bytes);
    return room;
  }
  void publish(const MessageHead& head) noexcept override {
    tell_publish(Kind::publish, head);
    inner_->publish(head);
  }
  void publish_reference(const MessageHead& head, const std::byte* data) noexcept override {
    tell_publish(Kind::publish_reference, head);
    inner_->publish_reference(head, data);
  }
  const Window* try_window() noexcept override {
    const Window* window = inner_->try_window();
    if (window != nullptr && !std::exchange(window_seen_, true)) {
      sink_({Kind::window, name_, ++windows_, window->bytes});
    }
    return window;
  }
  void publish_put(const MessageHead& head) noexcept override {
    tell_publish(Kind::publish_put, head);
    window_seen_ = false;
    inner_->publish_put(head);
  }

 private:
  void tell(Kind kind, std::uint64_t bytes) const {
    sink_({kind, name_, inner_->published() + 1, bytes});
  }
  // Before the peer can see the message, so that a trace of both ends is in a possible order.
  void tell_publish(Kind kind, const MessageHead& head) {
    acquired_ = false;
    tell(kind, head.bytes);
  }

  ChannelName name_;
  const TraceSink& sink_;
  bool acquired_ = false;
  bool window_seen_ = false;
  std::uint64_t windows_ = 0;
};

class TracedReceiver final : public WrappedReceiver {
 public:
  TracedReceiver(std::unique_ptr<Receiver> inner, const ChannelName& name, const TraceSink& sink)
      : WrappedReceiver(std::move(inner)), name_(name), sink_(sink) {}

  Observed try_observe(std::uint32_t digest) noexcept override {
    const Observed observed = inner_->try_observe(digest);
    if (observed.status != Status::ok) {
      const bool mismatch = observed.status == Status::mismatch;
      sink_({mismatch ? Kind::mismatch : Kind::corrupt, name_, released_ + 1, 0});
    } else if (observed.message != nullptr && !std::exchange(observed_, true)) {
      sink_({Kind::observe, name_, released_ + 1, observed.message->head.bytes});
    }
    return observed;
  }
  void release() noexcept override {
    observed_ = false;
    sink_({Kind::release, name_, ++released_, 0});
    inner_->release();
  }
  bool try_offer(const Window& window) noexcept override {
    const bool offered = inner_->try_offer(window);
    if (offered) sink_({Kind::offer, name_, ++offered_, window.bytes});
    return offered;
  }

 private:
  ChannelName name_;
  const TraceSink& sink_;
  bool observed_ = false;
  std::uint64_t released_ = 0;
  std::uint64_t offered_ = 0;
};

class Trace final : public WrappedTransport {
 public:
  Trace(std::unique_ptr<Transport> inner, TraceSink sink)
      : WrappedTransport(std::move(inner)), sink_(std::move(sink)) {}

 private:
  std::unique_ptr<Sender> around(std::unique_ptr<Sender> inner, const ChannelName& name) override {
    sink_({Kind::open_sender, name});
    return std::make_unique<TracedSender>(std::move(inner), name, sink_);
  }
  std::unique_ptr<Receiver> around(std::unique_ptr<Receiver> inner,
                                   const ChannelName& name) override {
    sink_({Kind::open_receiver, name});
    return std::make_unique<TracedReceiver>(std::move(inner), name, sink_);
  }

  TraceSink sink_;
};

}  // namespace
}  // namespace wrap

std::unique_ptr<Transport> make_trace(std::unique_ptr<Transport> inner, TraceSink sink) {
  return std::make_unique<wrap::Trace>(std::move(inner), std::move(sink));
}

}  // namespace khoro
