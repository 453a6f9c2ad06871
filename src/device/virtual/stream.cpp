// SPDX-License-Identifier: Apache-2.0
#include "device/virtual/stream.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "base/random.h"

namespace khoro::virtual_gpu {
namespace {

// Names look like addresses.
constexpr std::uint64_t step = 256;

}  // namespace

// Begins anywhere, so that no other driver's streams have the names of this one's.
Streams::Streams(std::size_t devices, Delays delays)
    : delays_(delays),
      next_((draw_random() >> 16) / step * step + step),
      defaults_(devices),
      made_(devices) {}

std::shared_ptr<Queue> Streams::make(int device) {
  const std::lock_guard lock(mutex_);
  auto queue = std::make_shared<Queue>(next_, delays_.of(++count_ + defaults_.size()));
  made_[static_cast<std::size_t>(device)].emplace(next_, queue);
  next_ += step;
  return queue;
}

std::shared_ptr<Queue> Streams::find(int device, const void* native) {
  const auto number = reinterpret_cast<std::uintptr_t>(native);
  const auto at = static_cast<std::size_t>(device);
  const std::lock_guard lock(mutex_);
  if (number == 0) {
    if (defaults_[at] == nullptr) defaults_[at] = std::make_shared<Queue>(0, delays_.of(at));
    return defaults_[at];
  }
  const auto found = made_[at].find(number);
  std::shared_ptr<Queue> queue = found == made_[at].end() ? nullptr : found->second.lock();
  if (queue == nullptr)
    throw Error(Code::invalid_argument,
                fmt::format("{} is not a stream of virtual GPU {}", native, device));
  return queue;
}

void Streams::forget(int device, const Queue& queue) noexcept {
  const std::lock_guard lock(mutex_);
  made_[static_cast<std::size_t>(device)].erase(queue.number());
}

void Stream::copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  queue_->push([to = memories_.data(to, bytes), from = memories_.data(from, bytes), bytes] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}

void Stream::fill(DeviceAddress to, std::byte value, std::uint64_t bytes) {
  queue_->push([to = memories_.data(to, bytes), value, bytes] {
    if (bytes > 0) std::memset(to, std::to_integer<int>(value), bytes);
  });
}

void Stream::launch(const Launch& launch) {
  queue_->push(
      [at = &multiprocessors_, grid = multiprocessors_.prepare(launch)] { at->run(*grid); });
}

void Stream::record(DeviceEvent& event) { queue_->record(virtual_event(event).point()); }

void Stream::wait(const DeviceEvent& event) {
  const std::shared_ptr<Point>& point = virtual_event(event).point();
  queue_->push([point, record = point->last()] { point->await(record); });
}

}  // namespace khoro::virtual_gpu
