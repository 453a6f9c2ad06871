// SPDX-License-Identifier: Apache-2.0
#include "device/virtual/event.h"

#include "base/error.h"

namespace khoro::virtual_gpu {

void Point::note(std::uint64_t record) noexcept {
  const std::lock_guard lock(mutex_);
  recorded_ = record;
}

void Point::reach(std::uint64_t record, const StreamFailure& failure) noexcept {
  const bool failed = failure.failed();
  const std::lock_guard lock(mutex_);
  if (record < reached_) return;  // another stream has come to a later one
  reached_ = record;
  failed_ = failed;
  progress_.notify_all();
}

std::uint64_t Point::last() const noexcept {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

bool Point::reached(std::uint64_t record) const {
  const std::lock_guard lock(mutex_);
  if (failed_)
    throw Error(Code::unhandled_device_error, "a stream failed before it came to an event");
  return reached_ >= record;
}

void Point::await(std::uint64_t record) const {
  {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return reached_ >= record; });
  }
  (void)reached(record);
}

const Event& virtual_event(const DeviceEvent& event) {
  const auto* const found = dynamic_cast<const Event*>(&event);
  if (found == nullptr) throw Error(Code::invalid_argument, "an event of another driver");
  return *found;
}

}  // namespace khoro::virtual_gpu
