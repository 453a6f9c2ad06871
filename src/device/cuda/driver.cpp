// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

#include <utility>

#include "base/error.h"
#include "device/cuda/api.h"
#include "device/cuda/gpus.h"
#include "device/cuda/memory.h"
#include "device/cuda/stream.h"

namespace khoro {
namespace {

using namespace cuda_driver;

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(const Api& api) : api_(api), gpus_(api_) {}

  std::string_view name() const noexcept override { return "cuda"; }
  int devices() const noexcept override { return gpus_.count(); }
  DeviceFacts facts(int device) const override { return gpus_.at(device).facts(); }
  bool reaches(int device, int peer) const override {
    return gpus_.at(device).reaches(gpus_.at(peer));
  }
  AddressFacts facts(DeviceAddress address) const override {
    return facts_of(gpus_.any(), address);
  }
  Reached reach(int device, DeviceAddress address) const override {
    return cuda_driver::reach(gpus_, gpus_.at(device), address);
  }

  std::unique_ptr<DeviceMemory> allocate(int device, std::uint64_t bytes) override {
    return cuda_driver::allocate(gpus_, gpus_.at(device), bytes);
  }
  std::unique_ptr<DeviceMemory> open(int device, const MemoryHandle& handle) override {
    Gpu& gpu = gpus_.at(device);
    return handle.descriptor ? open_mapped(gpus_, gpu, handle) : open_named(gpu, handle);
  }
  std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory) override {
    return cuda_driver::pin(gpus_.any(), memory);
  }

  std::unique_ptr<DeviceStream> make_stream(int device) override {
    return std::make_unique<OwnStream>(gpus_.at(device));
  }
  std::unique_ptr<DeviceStream> borrow_stream(int device, void* native) override {
    return Stream::borrow(gpus_.at(device), static_cast<CUstream>(native));
  }
  std::unique_ptr<DeviceEvent> make_event(int device) override {
    return std::make_unique<Event>(gpus_.at(device));
  }
  const Kernel& kernel(int device, const KernelImage& image, std::string_view name) override {
    return gpus_.at(device).kernel(image, name);
  }

 private:
  const Api api_;
  mutable Gpus gpus_;  // contexts are retained when somebody asks
};

}  // namespace

std::unique_ptr<Driver> open_cuda_driver(std::string& why_not) {
  const std::optional<Api> api = Api::open(why_not);
  if (!api) return nullptr;
  try {
    return std::make_unique<CudaDriver>(*api);
  } catch (const Error& error) {
    why_not = fmt::format("the driver of GPUs does not work: {}", error.what());
    return nullptr;
  }
}

}  // namespace khoro
