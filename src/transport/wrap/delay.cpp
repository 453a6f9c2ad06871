// SPDX-License-Identifier: Apache-2.0
#include "transport/wrap/delay.h"

#include <utility>

#include "base/hash.h"
#include "transport/wrap/wrapped.h"

namespace khoro {
namespace wrap {
namespace {

/// Holds back the items of one sequence, each for a time of its own.
class Gate {
 public:
  Gate(const DelaySetup& setup, std::uint64_t salt)
      : setup_(setup), state_(combine(setup.seed, salt)) {}

  /// Whether item `number`, which is there, may be seen. Numbers never go back.
  bool passes(std::uint64_t number) noexcept {
    const Time now = setup_.system.now();
    if (number != number_) {
      number_ = number;
      state_ = mix(state_);
      const auto longest = static_cast<std::uint64_t>(setup_.longest.count());
      due_ = now + Duration(static_cast<Duration::rep>(state_ % (longest + 1)));
    }
    if (now >= due_) return true;
    setup_.own.ring();
    return false;
  }

 private:
  const DelaySetup& setup_;
  std::uint64_t state_;
  std::uint64_t number_ = 0;
  Time due_{0};
};

class DelayedSender final : public WrappedSender {
 public:
  DelayedSender(std::unique_ptr<Sender> inner, const DelaySetup& setup, std::uint64_t salt)
      : WrappedSender(std::move(inner)),
        credits_(setup, combine(salt, 1)),
        releases_(setup, combine(salt, 2)),
        windows_(setup, combine(salt, 3)) {}

  std::byte* try_acquire(std::size_t bytes) noexcept override {
    std::byte* room = inner_->try_acquire(bytes);
    return room != nullptr && credits_.passes(inner_->published() + 1) ? room : nullptr;
  }
  std::uint64_t released() noexcept override {
    // What comes meanwhile waits for its own turn, so that a busy channel is not held back for
    // ever.
    if (pending_ == shown_) pending_ = inner_->released();
    if (pending_ != shown_ && releases_.passes(pending_)) shown_ = pending_;
    return shown_;
  }
  const Window* try_window() noexcept override {
    const Window* window = inner_->try_window();
    return window != nullptr && windows_.passes(filled_ + 1) ? window : nullptr;
  }
  void publish_put(const MessageHead& head) noexcept override {
    ++filled_;
    inner_->publish_put(head);
  }

 private:
  Gate credits_;
  Gate releases_;
  Gate windows_;
  std::uint64_t pending_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t filled_ = 0;
};

class DelayedReceiver final : public WrappedReceiver {
 public:
  DelayedReceiver(std::unique_ptr<Receiver> inner, const DelaySetup& setup, std::uint64_t salt)
      : WrappedReceiver(std::move(inner)), messages_(setup, combine(salt, 4)) {}

  Observed try_observe(std::uint32_t digest) noexcept override {
    const Observed observed = inner_->try_observe(digest);
    const bool nothing = observed.message == nullptr && observed.status == Status::ok;
    return nothing || messages_.passes(released_ + 1) ? observed : Observed{};
  }
  void release() noexcept override {
    ++released_;
    inner_->release();
  }

 private:
  Gate messages_;
  std::uint64_t released_ = 0;
};

class Delay final : public WrappedTransport {
 public:
  Delay(std::unique_ptr<Transport> inner, const DelaySetup& setup)
      : WrappedTransport(std::move(inner)), setup_(setup) {}

 private:
  static std::uint64_t salt(const ChannelName& name) noexcept {
    return combine(static_cast<std::uint64_t>(name.peer), name.index);
  }
  std::unique_ptr<Sender> around(std::unique_ptr<Sender> inner, const ChannelName& name) override {
    return std::make_unique<DelayedSender>(std::move(inner), setup_, salt(name));
  }
  std::unique_ptr<Receiver> around(std::unique_ptr<Receiver> inner,
                                   const ChannelName& name) override {
    return std::make_unique<DelayedReceiver>(std::move(inner), setup_, salt(name));
  }

  DelaySetup setup_;
};

}  // namespace
}  // namespace wrap

std::unique_ptr<Transport> make_delay(std::unique_ptr<Transport> inner, const DelaySetup& setup) {
  return std::make_unique<wrap::Delay>(std::move(inner), setup);
}

}  // namespace khoro
