// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gpus.h"

#include "base/error.h"

namespace khoro::cuda_driver {

Gpus::Gpus(const Api& api) {
  int count = 0;
  api.check(api.cuDeviceGetCount(&count), "count GPUs");
  for (int device = 0; device < count; ++device) gpus_.emplace_back(api, device);
}

Gpu& Gpus::any() {
  for (Gpu& gpu : gpus_)
    if (gpu.in_use()) return gpu;
  return at(0);
}

void Gpus::check_reach(const Gpu& gpu, int owner) {
  if (!gpu.reaches(at(owner)))
    throw Error(Code::invalid_usage,
                fmt::format("GPU {} does not reach memory of GPU {}", gpu.number(), owner));
}

void Gpus::note(DeviceAddress begin, DeviceSet devices) {
  const std::lock_guard lock(mutex_);
  if (devices != 0)
    noted_[begin] = devices;
  else
    noted_.erase(begin);
}

DeviceSet Gpus::noted(DeviceAddress begin) const {
  const std::lock_guard lock(mutex_);
  const auto found = noted_.find(begin);
  return found == noted_.end() ? 0 : found->second;
}

}  // namespace khoro::cuda_driver
