// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "device/failure.h"
#include "device/virtual/delays.h"
#include "device/virtual/event.h"

namespace khoro::virtual_gpu {

/// A thread that does tasks one after the other; when one throws, it does no more. Thread-safe.
class Queue {
 public:
  using Task = std::function<void()>;

  /// `number` is its native name.
  Queue(std::uint64_t number, Delays delays);
  ~Queue() { end(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  std::uint64_t number() const noexcept { return number_; }
  /// Throws unhandled_device_error after a failure, invalid_usage after end().
  void push(Task task);
  /// Has `point` reached, whether or not what was before it failed.
  void record(const std::shared_ptr<Point>& point);
  bool idle() const;
  void synchronize() const;
  /// Takes no more, and returns when all has been done.
  void end() noexcept;

 private:
  struct Entry {
    Task task;
    bool despite_failure = false;
  };
  void add(Entry entry);
  void run() noexcept;

  const std::uint64_t number_;
  const Delays delays_;
  StreamFailure failure_;
  mutable std::mutex mutex_;
  mutable std::condition_variable progress_;  // something was added, or all is done
  std::deque<Entry> entries_;                 // the first is being done
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace khoro::virtual_gpu
