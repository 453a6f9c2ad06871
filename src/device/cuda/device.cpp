// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/device.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace khoro::cuda_driver {
namespace {

/// As the kernel writes it.
std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

ModuleKernel::ModuleKernel(Gpu& gpu, CUmodule module, const std::string& name) : gpu_(gpu) {
  const Api& api = gpu.api();
  const CUresult found = api.cuModuleGetFunction(&function_, module, name.c_str());
  if (found == CUDA_ERROR_NOT_FOUND)
    throw Error(Code::invalid_argument, fmt::format("no kernel '{}' was built for GPUs", name));
  api.check(found, "look for the kernel {}", name);
  // Launches may ask for all the shared memory that a block can have.
  int fixed = 0;
  api.check(api.cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function_),
            "look at the kernel {}", name);
  const int most = gpu.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  api.check(api.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   most - fixed),
            "give the kernel {} shared memory", name);
}

int ModuleKernel::resident_blocks(int threads, std::uint32_t shared_bytes) const {
  const Current current(gpu_);
  const Api& api = gpu_.api();
  int blocks = 0;
  api.check(
      api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, threads, shared_bytes),
      "tell how many blocks of {} threads GPU {} holds", threads, gpu_.number());
  return blocks * gpu_.facts().multiprocessors;
}

Gpu::Gpu(const Api& api, int number) : api_(api), number_(number) {
  api_.check(api_.cuDeviceGet(&device_, number), "find GPU {}", number);
  std::array<char, 256> name{};
  api_.check(api_.cuDeviceGetName(name.data(), name.size() - 1, device_), "name GPU {}", number);
  std::array<char, 32> bus_id{};
  api_.check(api_.cuDeviceGetPCIBusId(bus_id.data(), bus_id.size() - 1, device_), "locate GPU {}",
             number);
  std::size_t bytes = 0;
  api_.check(api_.cuDeviceTotalMem(&bytes, device_), "measure the memory of GPU {}", number);
  facts_.name = name.data();
  facts_.bus_id = lower_case(bus_id.data());
  facts_.memory_bytes = bytes;
  facts_.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts_.capability = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                      attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

Gpu::~Gpu() {
  for (const auto& [code, module] : modules_)
    end_quietly(*this, [&, loaded = module] {
      api_.check(api_.cuModuleUnload(loaded), "unload kernels from GPU {}", number_);
    });
  if (context_ == nullptr) return;
  quietly([&] { api_.check(api_.cuDevicePrimaryCtxRelease(device_), "release GPU {}", number_); });
}

int Gpu::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  api_.check(api_.cuDeviceGetAttribute(&value, attribute, device_), "ask GPU {} for attribute {}",
             number_, static_cast<int>(attribute));
  return value;
}

bool Gpu::reaches(const Gpu& peer) const {
  if (&peer == this) return true;
  int can = 0;
  api_.check(api_.cuDeviceCanAccessPeer(&can, device_, peer.device_),
             "tell whether GPU {} reaches GPU {}", number_, peer.number_);
  return can != 0;
}

CUcontext Gpu::context() {
  const std::lock_guard lock(mutex_);
  if (context_ == nullptr)
    api_.check(api_.cuDevicePrimaryCtxRetain(&context_, device_), "use GPU {}", number_);
  return context_;
}

bool Gpu::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return context_ != nullptr;
}

const Kernel& Gpu::kernel(const KernelImage& image, std::string_view name) {
  if (image.code.empty())
    throw Error(Code::invalid_argument,
                fmt::format("no kernel '{}': this build has none for GPUs", name));
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  const auto loaded = modules_.find(image.code.data());
  CUmodule module = loaded == modules_.end() ? nullptr : loaded->second;
  if (module == nullptr) {
    api_.check(api_.cuModuleLoadData(&module, image.code.data()), "load kernels into GPU {}",
               number_);
    modules_.emplace(image.code.data(), module);
  }
  return kernels_.try_emplace({module, std::string(name)}, *this, module, std::string(name))
      .first->second;
}

Current::Current(Gpu& gpu) : api_(gpu.api()) {
  api_.check(api_.cuCtxPushCurrent(gpu.context()), "use GPU {}", gpu.number());
}

Current::~Current() {
  quietly([&] {
    CUcontext left = nullptr;
    api_.check(api_.cuCtxPopCurrent(&left), "give back the caller's context");
  });
}

}  // namespace khoro::cuda_driver
