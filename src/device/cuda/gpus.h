// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

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

 private:
  std::deque<Gpu> gpus_;
};

}  // namespace khoro::cuda_driver
