// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "device/driver.h"
#include "device/failure.h"

namespace khoro::virtual_gpu {

/// How far the streams are that an event was recorded on. Thread-safe.
class Point {
 public:
  /// A stream will come to it.
  void note(std::uint64_t record) noexcept;
  /// `failed`: the stream that comes to it has done less than was asked.
  void reach(std::uint64_t record, const StreamFailure& failure) noexcept;
  std::uint64_t last() const noexcept;
  /// Throws unhandled_device_error if the stream that came to it had failed, and so does await().
  bool reached(std::uint64_t record) const;
  void await(std::uint64_t record) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable progress_;
  std::uint64_t recorded_ = 0;
  std::uint64_t reached_ = 0;
  bool failed_ = false;
};

class Event final : public DeviceEvent {
 public:
  bool complete() const override { return point_->reached(point_->last()); }
  void synchronize() const override { point_->await(point_->last()); }

  /// Shared with what streams have been told to do.
  const std::shared_ptr<Point>& point() const noexcept { return point_; }

 private:
  std::shared_ptr<Point> point_ = std::make_shared<Point>();
};

/// Throws invalid_argument if it is not of a virtual GPU.
const Event& virtual_event(const DeviceEvent& event);

}  // namespace khoro::virtual_gpu
