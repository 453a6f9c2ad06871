// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "device/arguments.h"
#include "device/cuda/device.h"

namespace khoro::cuda_driver {

/// All devices of this process. Thread-safe.
class Gpus {
 public:
  explicit Gpus(const Api& api);

  int count() const noexcept { return static_cast<int>(gpus_.size()); }
  /// Throws invalid_argument if there is no such device.
  Gpu& at(int device) { return gpus_[place_of_device(device, gpus_.size())]; }
  /// One that is in use, if there is: for what is the same by all.
  Gpu& any();
  /// Throws invalid_usage unless kernels of `gpu` reach memory of the device `owner`.
  void check_reach(const Gpu& gpu, int owner);

  /// Which devices were let to the memory that begins there; none: it is no more.
  void note(DeviceAddress begin, DeviceSet devices);
  /// None where nothing was noted.
  DeviceSet noted(DeviceAddress begin) const;

 private:
  std::deque<Gpu> gpus_;
  mutable std::mutex mutex_;
  std::map<DeviceAddress, DeviceSet> noted_;
};

}  // namespace khoro::cuda_driver
