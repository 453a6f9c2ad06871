// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/memory.h"

#include <array>

#include "base/error.h"
#include "device/arguments.h"
#include "device/cuda/stream.h"

namespace khoro::cuda_driver {
namespace {

class RegisteredMemory final : public PinnedMemory {
 public:
  RegisteredMemory(Gpu& gpu, std::span<std::byte> memory) : gpu_(gpu), memory_(memory) {
    const Current current(gpu);
    const Api& api = gpu.api();
    api.check(api.cuMemHostRegister(memory.data(), memory.size(),
                                    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
              "pin {} bytes of host memory", memory.size());
  }
  ~RegisteredMemory() override {
    end_quietly(gpu_, [&] {
      const Api& api = gpu_.api();
      api.check(api.cuMemHostUnregister(memory_.data()), "let go of pinned host memory");
    });
  }
  DeviceAddress address() const noexcept override {
    return reinterpret_cast<DeviceAddress>(memory_.data());
  }

 private:
  Gpu& gpu_;
  std::span<std::byte> memory_;
};

bool maps_memory(const Gpu& gpu) {
  return gpu.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
         gpu.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
}

AddressFacts::Kind kind_of(unsigned type, bool managed) {
  if (managed) return AddressFacts::Kind::managed;
  if (type == CU_MEMORYTYPE_HOST) return AddressFacts::Kind::pinned;
  if (type == CU_MEMORYTYPE_DEVICE) return AddressFacts::Kind::device;
  return AddressFacts::Kind::unknown;
}

/// All that is to be known of an address, by one question: this is on the way of every call. What
/// kernels do not reach may have 0 for them.
Reached ask(Gpu& gpu, DeviceAddress address) {
  const Current current(gpu);
  const Api& api = gpu.api();
  unsigned type = 0;
  unsigned managed = 0;  // room for what is written as a boolean
  int device = -1;
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  CUdeviceptr seen = 0;
  std::array<CUpointer_attribute, 6> asked = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
  std::array<void*, 6> answers = {&type, &managed, &device, &begin, &bytes, &seen};
  api.check(api.cuPointerGetAttributes(asked.size(), asked.data(), answers.data(), address),
            "tell what is at {:#x}", address);
  const AddressFacts::Kind kind = kind_of(type, managed != 0);
  if (kind == AddressFacts::Kind::unknown) return {};
  return {seen, {kind, kind == AddressFacts::Kind::device ? device : -1, begin, bytes}, 0};
}

/// Whether kernels reach memory of another GPU: it may have an address for them that they must not
/// use.
bool allowed_elsewhere(Gpu& gpu, DeviceAddress address) {
  const Current current(gpu);
  const Api& api = gpu.api();
  unsigned access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  const CUresult result =
      api.cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address);
  if (result == CUDA_ERROR_INVALID_VALUE) return false;
  api.check(result, "tell how GPU {} reaches {:#x}", gpu.number(), address);
  return access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

}  // namespace

std::unique_ptr<DeviceMemory> allocate(Gpus& gpus, Gpu& gpu, std::uint64_t bytes) {
  check_allocation(gpu.number(), bytes, gpu.facts().memory_bytes);
  std::unique_ptr<DeviceMemory> memory =
      maps_memory(gpu) ? allocate_mapped(gpus, gpu, bytes) : allocate_named(gpus, gpu, bytes);
  // On a stream of its own: the default one may wait for what the caller runs.
  OwnStream stream(gpu);
  stream.fill(memory->address(), std::byte{0}, bytes);
  stream.synchronize();
  return memory;
}

std::unique_ptr<PinnedMemory> pin(Gpu& gpu, std::span<std::byte> memory) {
  check_pinnable(memory);
  return std::make_unique<RegisteredMemory>(gpu, memory);
}

AddressFacts facts_of(Gpu& gpu, DeviceAddress address) { return ask(gpu, address).facts; }

Reached reach(const Gpus& gpus, Gpu& gpu, DeviceAddress address) {
  Reached reached = ask(gpu, address);
  const AddressFacts& facts = reached.facts;
  if (facts.kind == AddressFacts::Kind::unknown) throw unreachable(address);
  bool allowed = reached.in_kernels != 0;
  if (allowed && facts.kind == AddressFacts::Kind::device && facts.device != gpu.number())
    allowed = allowed_elsewhere(gpu, address);
  if (!allowed)
    throw Error(Code::invalid_usage,
                fmt::format("kernels of GPU {} were not allowed to reach {:#x} of GPU {}",
                            gpu.number(), address, facts.device));
  if (facts.kind == AddressFacts::Kind::device)
    reached.devices = only(facts.device) | gpus.noted(facts.begin);
  return reached;
}

}  // namespace khoro::cuda_driver
