// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/driver.h"
#include "device/virtual/memory.h"
#include "device/virtual/multiprocessors.h"
#include "device/virtual/queue.h"

namespace khoro::virtual_gpu {

/// The streams that there are, by device and native name. Names are not used again, so those of
/// streams that are gone are known to be stale. Thread-safe.
class Streams {
 public:
  Streams(std::size_t devices, Delays delays);

  std::shared_ptr<Queue> make(int device);
  /// Throws invalid_argument if there is none of that name on the device.
  std::shared_ptr<Queue> find(int device, const void* native);
  void forget(int device, const Queue& queue) noexcept;

 private:
  const Delays delays_;
  std::mutex mutex_;
  std::uint64_t next_;
  std::uint64_t count_ = 0;
  std::vector<std::shared_ptr<Queue>> defaults_;  // by device; null until somebody asks
  std::vector<std::map<std::uint64_t, std::weak_ptr<Queue>>> made_;
};

/// A stream for who has made it, or borrows it.
class Stream : public DeviceStream {
 public:
  Stream(const Memories& memories, Multiprocessors& multiprocessors, std::shared_ptr<Queue> queue)
      : memories_(memories), multiprocessors_(multiprocessors), queue_(std::move(queue)) {}

  void* native() const noexcept override { return reinterpret_cast<void*>(queue_->number()); }
  void copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) override;
  void fill(DeviceAddress to, std::byte value, std::uint64_t bytes) override;
  void launch(const Launch& launch) override;
  void record(DeviceEvent& event) override;
  void wait(const DeviceEvent& event) override;
  void call(std::function<void()> function) override { queue_->push(std::move(function)); }
  bool idle() const override { return queue_->idle(); }
  void synchronize() const override { queue_->synchronize(); }

 protected:
  Queue& queue() const noexcept { return *queue_; }

 private:
  const Memories& memories_;
  Multiprocessors& multiprocessors_;
  std::shared_ptr<Queue> queue_;  // with others that borrow it
};

class OwnStream final : public Stream {
 public:
  OwnStream(Streams& streams, int device, const Memories& memories,
            Multiprocessors& multiprocessors)
      : Stream(memories, multiprocessors, streams.make(device)),
        streams_(streams),
        device_(device) {}
  ~OwnStream() override {
    streams_.forget(device_, queue());
    queue().end();
  }

 private:
  Streams& streams_;
  int device_;
};

}  // namespace khoro::virtual_gpu
