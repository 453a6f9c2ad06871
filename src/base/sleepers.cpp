// SPDX-License-Identifier: Apache-2.0
#include "base/sleepers.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/system.h"

namespace khoro {
namespace {

/// How long who could not be called sleeps.
constexpr Duration nap = std::chrono::milliseconds(1);

bool all_armed(std::span<const Doorbell> doorbells) noexcept {
  return std::all_of(doorbells.begin(), doorbells.end(),
                     [](const Doorbell& doorbell) { return doorbell.armed(); });
}

/// Some have no descriptor of their own.
bool needs_alarm(std::span<const Doorbell> doorbells) noexcept {
  return std::any_of(doorbells.begin(), doorbells.end(),
                     [](const Doorbell& doorbell) { return doorbell.descriptor() < 0; });
}

/// False if it was not readable.
bool drain(int event) noexcept {
  std::uint64_t rings = 0;
  return ::read(event, &rings, sizeof rings) == sizeof rings;
}

bool add_to(const Descriptor& set, const Descriptor& descriptor) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(set.number(), EPOLL_CTL_ADD, descriptor.number(), &event) == 0;
}

}  // namespace

Sleepers& Sleepers::of_process() noexcept {
  // Never destroyed: threads may sleep until the process has ended.
  alignas(Sleepers) static std::byte memory[sizeof(Sleepers)];
  static Sleepers& sleepers = *new (memory) Sleepers;
  return sleepers;
}

std::shared_ptr<void> Sleepers::keep() {
  struct Keeper {
    explicit Keeper(Sleepers& of) : sleepers(of) {
      const std::lock_guard lock(of.mutex_);
      ++of.keepers_;
    }
    ~Keeper() { sleepers.give_up(); }
    Sleepers& sleepers;
  };
  return std::make_shared<Keeper>(*this);
}

void Sleepers::give_up() noexcept {
  const std::lock_guard lock(mutex_);
  if (--keepers_ > 0) return;
  // Others may have copies of the bell, with which it would stay in the set.
  if (listening_) ::epoll_ctl(listening_->set.number(), EPOLL_CTL_DEL, bell_.number(), nullptr);
  listening_ = nullptr;
  bell_ = Descriptor();
  unused_.clear();
}

int Sleepers::bell() {
  const std::lock_guard lock(mutex_);
  if (!bell_) {
    bell_ = make_doorbell_descriptor();
    appoint_listener();
  }
  return bell_.number();
}

void Sleepers::sleep(std::span<const Doorbell> doorbells, Time until) noexcept {
  const std::size_t count = doorbells.size();
  const std::unique_ptr<pollfd[]> polled(new (std::nothrow) pollfd[1 + 2 * count]);
  if (!polled) return;
  Sleeper sleeper{doorbells};
  if (!lie_down(sleeper)) return;
  for (std::size_t i = 0; i < count; ++i) {
    // poll passes over -1
    polled[i] = {doorbells[i].descriptor(), POLLIN, 0};
    polled[count + i] = {doorbells[i].besides(), POLLIN, 0};
  }
  polled[2 * count] = {sleeper.alarm ? sleeper.alarm->set.number() : -1, POLLIN, 0};
  const Time now = machine().now();
  if (!sleeper.alarm && needs_alarm(doorbells)) until = std::min(until, now + nap);
  const timespec time = to_timespec(until - now);
  const int ready = ::ppoll(polled.get(), 1 + 2 * count, until == never ? nullptr : &time, nullptr);
  for (std::size_t i = 0; ready > 0 && i < count; ++i)
    if ((polled[i].revents & POLLIN) != 0) drain(polled[i].fd);
  get_up(sleeper);
}

void Sleepers::wake() noexcept {
  const std::lock_guard lock(mutex_);
  call_rung();
}

/// False if a doorbell has rung already. From now on one that rings is seen by call_rung().
bool Sleepers::lie_down(Sleeper& sleeper) noexcept {
  const std::lock_guard lock(mutex_);
  if (!all_armed(sleeper.doorbells)) return false;
  sleeper.alarm = needs_alarm(sleeper.doorbells) ? find_alarm() : nullptr;
  sleeper.next = first_;
  first_ = &sleeper;
  appoint_listener();
  return true;
}

void Sleepers::get_up(Sleeper& sleeper) noexcept {
  const std::lock_guard lock(mutex_);
  Sleeper** at = &first_;
  while (*at != &sleeper) at = &(*at)->next;
  *at = sleeper.next;
  if (!sleeper.alarm) return;
  if (sleeper.called) drain(sleeper.alarm->call.number());
  if (listening_ == sleeper.alarm.get()) {
    if (drain(bell_.number())) call_rung();
    appoint_listener();
  }
  if (keepers_ > 0)
    unused_.push_back(std::move(sleeper.alarm));  // there is room for all
  else if (listening_ == sleeper.alarm.get())
    listening_ = nullptr;
}

/// Null if memory or descriptors have run out.
std::unique_ptr<Sleepers::Alarm> Sleepers::find_alarm() noexcept try {
  if (!unused_.empty()) {
    std::unique_ptr<Alarm> alarm = std::move(unused_.back());
    unused_.pop_back();
    return alarm;
  }
  std::size_t asleep = 0;
  for (const Sleeper* each = first_; each; each = each->next) ++asleep;
  unused_.reserve(asleep + 1);
  auto alarm = std::make_unique<Alarm>();
  alarm->set = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  alarm->call = make_doorbell_descriptor();
  if (!alarm->set || !add_to(alarm->set, alarm->call)) return nullptr;
  return alarm;
} catch (const std::exception&) {
  return nullptr;
}

/// Sees to it that one of those who sleep listens to the bell.
void Sleepers::appoint_listener() noexcept {
  if (!bell_) return;
  const Alarm* next = nullptr;
  for (Sleeper* each = first_; each; each = each->next) {
    if (!each->alarm) continue;
    if (each->alarm.get() == listening_) return;
    next = each->alarm.get();
  }
  if (!next) return;
  if (listening_) ::epoll_ctl(listening_->set.number(), EPOLL_CTL_DEL, bell_.number(), nullptr);
  listening_ = add_to(next->set, bell_) ? next : nullptr;
}

void Sleepers::call_rung() noexcept {
  for (Sleeper* each = first_; each; each = each->next) {
    if (each->called || !each->alarm || all_armed(each->doorbells)) continue;
    each->called = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(each->alarm->call.number(), &one, sizeof one);
  }
}

}  // namespace khoro
