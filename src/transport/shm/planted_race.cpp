// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/planted_race.h"

#ifdef KHORO_TEST_SWITCHES
#include <time.h>

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "transport/wrap/wrapped.h"

namespace khoro::shm {
namespace {

void sleep_a_while() noexcept {
  constexpr timespec millisecond{0, 1'000'000};
  ::nanosleep(&millisecond, nullptr);
}

std::atomic<std::uint64_t> early_period{0};
std::atomic<void (*)() noexcept> in_between{&sleep_a_while};

/// Has payloads written somewhere else, and copies them to their slots when they are published: in
/// time, or too late.
class EarlySender final : public wrap::WrappedSender {
 public:
  EarlySender(std::unique_ptr<Sender> inner, std::uint64_t period)
      : WrappedSender(std::move(inner)), period_(period) {}

  std::byte* try_acquire(std::size_t bytes) noexcept override {
    slot_ = inner_->try_acquire(bytes);
    if (slot_ == nullptr) return nullptr;
    acquired_ = bytes;
    if (payload_.size() < bytes + 1) payload_.resize(bytes + 1);
    return payload_.data();
  }
  void publish(const MessageHead& head) noexcept override {
    const bool early = inner_->published() % period_ == period_ - 1;
    if (!early) std::memcpy(slot_, payload_.data(), acquired_);
    inner_->publish(head);
    if (!early) return;
    in_between.load(std::memory_order_relaxed)();
    std::memcpy(slot_, payload_.data(), acquired_);
  }
  void publish_put(const MessageHead& head) noexcept override {
    std::memcpy(slot_, payload_.data(), acquired_);
    inner_->publish_put(head);
  }

 private:
  std::uint64_t period_;
  std::byte* slot_ = nullptr;
  std::size_t acquired_ = 0;
  std::vector<std::byte> payload_;
};

class Early final : public wrap::WrappedTransport {
 public:
  Early(std::unique_ptr<Transport> inner, std::uint64_t period)
      : WrappedTransport(std::move(inner)), period_(period) {}

 private:
  std::unique_ptr<Sender> around(std::unique_ptr<Sender> inner, const ChannelName&) override {
    return std::make_unique<EarlySender>(std::move(inner), period_);
  }
  std::unique_ptr<Receiver> around(std::unique_ptr<Receiver> inner, const ChannelName&) override {
    return inner;
  }

  std::uint64_t period_;
};

}  // namespace

void publish_early(std::uint64_t period, void (*meanwhile)() noexcept) noexcept {
  in_between.store(meanwhile != nullptr ? meanwhile : &sleep_a_while, std::memory_order_relaxed);
  early_period.store(period, std::memory_order_relaxed);
}

std::unique_ptr<Transport> with_planted_race(std::unique_ptr<Transport> made) {
  const std::uint64_t period = early_period.load(std::memory_order_relaxed);
  if (period == 0) return made;
  return std::make_unique<Early>(std::move(made), period);
}

}  // namespace khoro::shm
#endif
