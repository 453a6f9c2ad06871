// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/cuda/device.h"
#include "device/driver.h"
#include "device/failure.h"

namespace khoro::cuda_driver {

class Event final : public DeviceEvent {
 public:
  explicit Event(Gpu& gpu);
  ~Event() override;
  bool complete() const override;
  void synchronize() const override;
  CUevent native() const noexcept { return event_; }

 private:
  Gpu& gpu_;
  const Api& api_;
  CUevent event_ = nullptr;
};

/// A stream for who has made it, or borrows it.
class Stream : public DeviceStream {
 public:
  /// Throws invalid_argument if it is of another context than the device's.
  static std::unique_ptr<Stream> borrow(Gpu& gpu, CUstream stream);

  void* native() const noexcept override { return stream_; }
  void copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) override;
  void fill(DeviceAddress to, std::byte value, std::uint64_t bytes) override;
  void launch(const Launch& launch) override;
  void record(DeviceEvent& event) override;
  void wait(const DeviceEvent& event) override;
  void call(std::function<void()> function) override;
  bool idle() const override;
  void synchronize() const override;

 protected:
  Stream(Gpu& gpu, CUstream stream)
      : gpu_(gpu), stream_(stream), failure_(std::make_shared<StreamFailure>()) {}
  Gpu& gpu() const noexcept { return gpu_; }

 private:
  /// Calls `queue` with the driver while the device's context is current.
  template <class Function>
  void with_api(Function&& function) const;

  Gpu& gpu_;
  CUstream stream_;
  std::shared_ptr<StreamFailure> failure_;  // with functions that are yet to be called
};

/// Waits for nothing but what it is told to, not for the default stream either.
class OwnStream final : public Stream {
 public:
  explicit OwnStream(Gpu& gpu) : Stream(gpu, make(gpu)) {}
  ~OwnStream() override;

 private:
  static CUstream make(Gpu& gpu);
};

}  // namespace khoro::cuda_driver
