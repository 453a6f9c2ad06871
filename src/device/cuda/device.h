// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "device/cuda/api.h"
#include "device/driver.h"

namespace khoro::cuda_driver {

class Gpu;

class ModuleKernel final : public Kernel {
 public:
  ModuleKernel(Gpu& gpu, CUmodule module, const std::string& name);
  int resident_blocks(int threads, std::uint32_t shared_bytes) const override;

  const Gpu& gpu() const noexcept { return gpu_; }
  CUfunction function() const noexcept { return function_; }

 private:
  Gpu& gpu_;
  CUfunction function_ = nullptr;
};

/// A device, its primary context, and what has been loaded into it. Thread-safe.
class Gpu {
 public:
  Gpu(const Api& api, int number);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Api& api() const noexcept { return api_; }
  int number() const noexcept { return number_; }
  const DeviceFacts& facts() const noexcept { return facts_; }
  int attribute(CUdevice_attribute attribute) const;
  bool reaches(const Gpu& peer) const;
  /// Retained when it is first asked for: a process pays for the devices that it uses.
  CUcontext context();
  bool in_use() const noexcept;
  const Kernel& kernel(const KernelImage& image, std::string_view name);

 private:
  const Api& api_;
  const int number_;
  CUdevice device_ = 0;
  DeviceFacts facts_;
  mutable std::mutex mutex_;
  CUcontext context_ = nullptr;
  std::map<const std::byte*, CUmodule> modules_;  // by their code
  std::map<std::pair<CUmodule, std::string>, ModuleKernel> kernels_;
};

/// Has a device's context current while it lives; the caller's is so again afterwards.
class Current {
 public:
  explicit Current(Gpu& gpu);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Api& api_;
};

/// Ends something of a device, as far as that can be done.
template <class Function>
void end_quietly(Gpu& gpu, Function&& function) noexcept {
  std::optional<Current> current;
  quietly([&] { current.emplace(gpu); });
  quietly(function);
}

}  // namespace khoro::cuda_driver
