// SPDX-License-Identifier: Apache-2.0
#include "device/virtual/queue.h"

#include <utility>

#include "base/error.h"
#include "base/thread.h"

namespace khoro::virtual_gpu {

Queue::Queue(std::uint64_t number, Delays delays)
    : number_(number), delays_(delays), thread_(start_thread("stream", [this] { run(); })) {}

void Queue::push(Task task) { add({std::move(task)}); }

void Queue::record(const std::shared_ptr<Point>& point) {
  const std::uint64_t record = point->last() + 1;
  add({[this, point, record] { point->reach(record, failure_); }, true});
  point->note(record);  // not before: nobody may wait for what failed to be queued
}

void Queue::add(Entry entry) {
  failure_.check();
  const std::lock_guard lock(mutex_);
  if (ending_) throw Error(Code::invalid_usage, "the stream has been destroyed");
  entries_.push_back(std::move(entry));
  progress_.notify_all();
}

bool Queue::idle() const {
  std::unique_lock lock(mutex_);
  const bool idle = entries_.empty();
  lock.unlock();
  failure_.check();  // afterwards: what ended last may have failed
  return idle;
}

void Queue::synchronize() const {
  {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return entries_.empty(); });
  }
  failure_.check();
}

void Queue::end() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ending_, true)) return;
    progress_.notify_all();
  }
  thread_.join();
}

void Queue::run() noexcept {
  std::unique_lock lock(mutex_);
  for (std::uint64_t count = 0;; ++count) {
    progress_.wait(lock, [&] { return !entries_.empty() || ending_; });
    if (entries_.empty()) return;
    Entry& entry = entries_.front();  // stays where it is while others are added
    lock.unlock();
    delays_.at(count);
    if (entry.despite_failure || !failure_.failed()) failure_.watch(entry.task);
    entry.task = nullptr;  // what it held is let go before anybody hears that it is done
    lock.lock();
    entries_.pop_front();
    if (entries_.empty()) progress_.notify_all();
  }
}

}  // namespace khoro::virtual_gpu
