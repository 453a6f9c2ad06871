// SPDX-License-Identifier: Apache-2.0
#include "communicator/control.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/system.h"
#include "base/thread.h"

namespace khoro {
namespace {

constexpr std::uint64_t stop_number = 0;
constexpr std::uint64_t timer_number = 1;
// Events wake it; this is for programs that close descriptors which are not theirs.
constexpr int longest_sleep_ms = 1'000;

bool listen_to(const Descriptor& events, int descriptor, std::uint64_t number) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  return ::epoll_ctl(events.number(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

Time next_multiple(Duration period) noexcept { return (machine().now() / period + 1) * period; }

}  // namespace

Control::Control()
    : process_(::getpid()),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!events_ || !timer_ || !listen_to(events_, stop_.descriptor(), stop_number) ||
      !listen_to(events_, timer_.number(), timer_number))
    throw_errno("cannot set up the control thread");
  thread_ = start_thread("control", [this] { work(); });
}

Control::~Control() {
  if (forked()) {
    thread_.detach();
    return;
  }
  stop_.raise();
  thread_.join();
}

bool Control::forked() const noexcept { return ::getpid() != process_; }

std::uint64_t Control::add(Entry entry) {
  // A child has a copy of the mutex, perhaps locked, and shares the descriptors with its parent.
  if (forked())
    throw Error(Code::invalid_usage,
                "this process was forked from one that uses Khoro; call "
                "exec before using it");
  std::lock_guard lock(mutex_);
  std::uint64_t number = next_number_++;
  int descriptor = entry.descriptor;
  Time when = entry.when;
  entries_[number] = std::make_shared<Entry>(std::move(entry));
  if (descriptor >= 0 && !listen_to(events_, descriptor, number)) {
    int cause = errno;
    entries_.erase(number);
    errno = cause;
    throw_errno("cannot watch a descriptor on the control thread");
  }
  if (descriptor < 0) {
    times_.emplace(when, number);
    arm_timer();
  }
  return number;
}

Control::Watch Control::when_ended(int pidfd, Callback callback) {
  return Watch(*this, add({std::move(callback), pidfd, true, never}));
}

Control::Watch Control::while_readable(int descriptor, Callback callback) {
  return Watch(*this, add({std::move(callback), descriptor, false, never}));
}

Control::Watch Control::at(Time when, Callback callback) {
  return Watch(*this, add({std::move(callback), -1, true, when}));
}

Control::Watch Control::every(Duration period, Callback callback) {
  return Watch(*this, add({std::move(callback), -1, false, next_multiple(period), period}));
}

std::size_t Control::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

/// With the mutex held: where the time of an entry stands, if it has one.
Control::Times::iterator Control::time_of(const Entry& entry, std::uint64_t number) noexcept {
  const auto [first, last] = times_.equal_range(entry.when);
  const auto found =
      std::find_if(first, last, [&](const auto& time) { return time.second == number; });
  return found == last ? times_.end() : found;
}

/// With the mutex held: the entry causes no more events.
void Control::silence(const Entry& entry, std::uint64_t number) noexcept {
  if (entry.descriptor >= 0)
    ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, entry.descriptor, nullptr);
  const auto time = time_of(entry, number);
  if (time != times_.end()) times_.erase(time);
}

/// With the mutex held: the next time of an entry that has several. It must not need memory.
void Control::postpone(Entry& entry, std::uint64_t number) noexcept {
  auto node = times_.extract(time_of(entry, number));
  entry.when = next_multiple(entry.period);
  node.key() = entry.when;
  times_.insert(std::move(node));
}

void Control::drop(std::uint64_t number) noexcept {
  if (forked()) return;
  // Destroyed after the lock is released: what a callback holds may drop watches in turn.
  std::shared_ptr<Entry> dropped;
  std::unique_lock lock(mutex_);
  auto found = entries_.find(number);
  if (found != entries_.end()) {
    dropped = std::move(found->second);
    entries_.erase(found);
    silence(*dropped, number);
  }
  if (std::this_thread::get_id() != thread_.get_id())
    idle_.wait(lock, [&] { return running_ != number; });
}

/// With the mutex held. The time is absolute on the clock that machine() shows.
void Control::arm_timer() noexcept {
  itimerspec setting{};
  if (!times_.empty() && times_.begin()->first != never) {
    auto nanoseconds = std::max<std::int64_t>(times_.begin()->first.count(), 1);
    setting.it_value = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  }
  ::timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

void Control::work() noexcept {
  for (;;) {
    epoll_event events[32];
    int count = ::epoll_wait(events_.number(), events, 32, longest_sleep_ms);
    if (stop_.raised()) return;
    if (count < 0 && errno != EINTR) {
      log(LogLevel::error,
          "control thread: the program has closed its descriptors ({}); deaths of other ranks are "
          "not seen any more; close only what you opened",
          words_of_errno());
      return;
    }
    for (int i = 0; i < count; ++i) {
      std::uint64_t number = events[i].data.u64;
      if (number == timer_number)
        run_timers();
      else
        run(number);
    }
  }
}

void Control::run_timers() noexcept {
  std::uint64_t expirations;
  [[maybe_unused]] auto size = ::read(timer_.number(), &expirations, sizeof expirations);
  for (;;) {
    std::uint64_t number;
    {
      std::lock_guard lock(mutex_);
      if (times_.empty() || times_.begin()->first > machine().now()) return arm_timer();
      number = times_.begin()->second;
    }
    run(number);
  }
}

void Control::run(std::uint64_t number) noexcept {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(number);
    // Dropped since the event was read.
    if (found == entries_.end()) return;
    entry = found->second;
    if (entry->once) silence(*entry, number);
    if (entry->period > Duration::zero()) postpone(*entry, number);
    running_ = number;
  }
  try {
    entry->callback();
  } catch (const std::exception& error) {
    log(LogLevel::error, "control thread: a callback failed: {}", error.what());
  }
  entry.reset();
  std::lock_guard lock(mutex_);
  running_ = 0;
  idle_.notify_all();
}

}  // namespace khoro
