// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/error.h"
#include "device/cuda/memory.h"

namespace khoro::cuda_driver {
namespace {

static_assert(sizeof(CUipcMemHandle) == sizeof(MemoryHandle::words));

// The name is of the whole page, so nothing else may be in it.
std::uint64_t to_pages(std::uint64_t bytes) {
  constexpr std::uint64_t page = 2 << 20;
  return (bytes + page - 1) / page * page;
}

class NamedMemory final : public DeviceMemory {
 public:
  NamedMemory(Gpus& gpus, Gpu& gpu, std::uint64_t bytes) : gpus_(gpus), gpu_(gpu), bytes_(bytes) {
    const Current current(gpu);
    api_.check(api_.cuMemAlloc(&address_, to_pages(bytes)), "allocate {} bytes on GPU {}", bytes,
               gpu.number());
  }
  ~NamedMemory() override {
    end_quietly(gpu_, [&] {
      api_.check(api_.cuMemFree(address_), "free {} bytes on GPU {}", bytes_, gpu_.number());
    });
  }
  DeviceAddress address() const noexcept override { return address_; }
  std::uint64_t bytes() const noexcept override { return bytes_; }
  std::uint64_t held() const noexcept override { return to_pages(bytes_); }

  void allow(int device) override {
    Gpu& user = gpus_.at(device);
    gpus_.check_reach(user, gpu_.number());
    if (&user == &gpu_) return;
    const Current current(user);
    const CUresult result = api_.cuCtxEnablePeerAccess(gpu_.context(), 0);
    if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      api_.check(result, "let GPU {} reach memory of GPU {}", device, gpu_.number());
  }

  /// Contexts are let to each other's memory, and those of other devices are not made for it.
  void allow_all() noexcept override {}

  MemoryHandle handle() const override {
    const Current current(gpu_);
    CUipcMemHandle name{};
    api_.check(api_.cuIpcGetMemHandle(&name, address_), "share {} bytes of GPU {}", bytes_,
               gpu_.number());
    MemoryHandle handle;
    handle.bytes = bytes_;
    std::memcpy(handle.words.data(), &name, sizeof name);
    return handle;
  }

 private:
  Gpus& gpus_;
  Gpu& gpu_;
  const Api& api_ = gpu_.api();
  CUdeviceptr address_ = 0;
  std::uint64_t bytes_;
};

class OpenedMemory final : public DeviceMemory {
 public:
  OpenedMemory(Gpu& gpu, const MemoryHandle& handle)
      : gpu_(gpu), handle_{{}, handle.words, handle.bytes} {
    const Current current(gpu);
    CUipcMemHandle name{};
    std::memcpy(&name, handle.words.data(), sizeof name);
    api_.check(api_.cuIpcOpenMemHandle(&address_, name, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
               "open {} bytes of another process on GPU {}", handle.bytes, gpu.number());
  }
  ~OpenedMemory() override {
    end_quietly(gpu_, [&] {
      api_.check(api_.cuIpcCloseMemHandle(address_), "close {} bytes of another process",
                 handle_.bytes);
    });
  }
  DeviceAddress address() const noexcept override { return address_; }
  std::uint64_t bytes() const noexcept override { return handle_.bytes; }
  std::uint64_t held() const noexcept override { return to_pages(handle_.bytes); }
  void allow(int device) override {
    if (device != gpu_.number())
      throw Error(Code::invalid_usage,
                  fmt::format("memory of another process was opened for GPU {}, and GPU {} does "
                              "not reach it: open it for that one",
                              gpu_.number(), device));
  }
  void allow_all() noexcept override {}
  MemoryHandle handle() const override { return {{}, handle_.words, handle_.bytes}; }

 private:
  Gpu& gpu_;
  const Api& api_ = gpu_.api();
  MemoryHandle handle_;
  CUdeviceptr address_ = 0;
};

}  // namespace

std::unique_ptr<DeviceMemory> allocate_named(Gpus& gpus, Gpu& gpu, std::uint64_t bytes) {
  return std::make_unique<NamedMemory>(gpus, gpu, bytes);
}

std::unique_ptr<DeviceMemory> open_named(Gpu& gpu, const MemoryHandle& handle) {
  if (handle.bytes == 0) throw Error(Code::invalid_argument, "not a handle of memory of a GPU");
  return std::make_unique<OpenedMemory>(gpu, handle);
}

}  // namespace khoro::cuda_driver
