// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cstring>

#include "base/error.h"
#include "device/cuda/memory.h"

namespace khoro::cuda_driver {
namespace {

/// What has been taken so far of memory that is mapped, and is given back in the end.
struct Parts {
  explicit Parts(Gpu& of) : gpu(of), api(of.api()) {}
  ~Parts() {
    end_quietly(gpu, [&] {
      const auto end = [&](CUresult result) { quietly([&] { api.check(result, "free memory"); }); };
      if (mapped) end(api.cuMemUnmap(address, size));
      if (address != 0) end(api.cuMemAddressFree(address, size));
      if (created) end(api.cuMemRelease(memory));
    });
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Gpu& gpu;
  const Api& api;
  std::uint64_t size = 0;  // whole pages of the device
  CUmemGenericAllocationHandle memory = 0;
  bool created = false;
  CUdeviceptr address = 0;
  bool mapped = false;
};

class MappedMemory final : public DeviceMemory {
 public:
  MappedMemory(Gpus& gpus, Gpu& gpu) : gpus_(gpus), gpu_(gpu), api_(gpu.api()), parts_(gpu) {}
  ~MappedMemory() override {
    if (users_ != 0) gpus_.note(parts_.address, 0);
  }

  void create(std::uint64_t bytes) {
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, {gpu_.number()}};
    std::size_t page = 0;
    api_.check(api_.cuMemGetAllocationGranularity(&page, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
               "tell the pages of GPU {}", gpu_.number());
    bytes_ = bytes;
    owner_ = gpu_.number();
    parts_.size = (bytes + page - 1) / page * page;
    api_.check(api_.cuMemCreate(&parts_.memory, parts_.size, &kind, 0),
               "allocate {} bytes on GPU {}", bytes, owner_);
    parts_.created = true;
    map();
  }

  void import(const MemoryHandle& handle) {
    bytes_ = handle.bytes;
    std::memcpy(&parts_.size, handle.words.data(), sizeof parts_.size);
    if (bytes_ == 0 || parts_.size < bytes_)
      throw Error(Code::invalid_argument, "not a handle of memory of a GPU");
    const auto number = static_cast<std::uintptr_t>(handle.descriptor.number());
    api_.check(api_.cuMemImportFromShareableHandle(&parts_.memory, reinterpret_cast<void*>(number),
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
               "open {} bytes of another process", bytes_);
    parts_.created = true;
    CUmemAllocationProp kind{};
    api_.check(api_.cuMemGetAllocationPropertiesFromHandle(&kind, parts_.memory),
               "tell whose memory was opened");
    owner_ = kind.location.id;
    gpus_.check_reach(gpu_, owner_);
    map();
  }

  DeviceAddress address() const noexcept override { return parts_.address; }
  std::uint64_t bytes() const noexcept override { return bytes_; }
  std::uint64_t held() const noexcept override { return parts_.size; }

  void allow(int device) override {
    Gpu& user = gpus_.at(device);
    gpus_.check_reach(user, owner_);
    let(user);
  }

  void allow_all() noexcept override {
    for (int device = 0; device < gpus_.count(); ++device)
      quietly([&] {
        if (gpus_.at(device).reaches(gpus_.at(owner_))) let(gpus_.at(device));
      });
  }

  MemoryHandle handle() const override {
    const Current current(gpu_);
    MemoryHandle handle;
    int number = -1;
    api_.check(api_.cuMemExportToShareableHandle(&number, parts_.memory,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
               "share {} bytes of GPU {}", bytes_, owner_);
    handle.descriptor = Descriptor(number);
    (void)::fcntl(handle.descriptor.number(), F_SETFD, FD_CLOEXEC);
    handle.bytes = bytes_;
    std::memcpy(handle.words.data(), &parts_.size, sizeof parts_.size);
    return handle;
  }

 private:
  void map() {
    api_.check(api_.cuMemAddressReserve(&parts_.address, parts_.size, 0, 0, 0),
               "reserve {} addresses", parts_.size);
    api_.check(api_.cuMemMap(parts_.address, parts_.size, 0, parts_.memory, 0), "map {} bytes",
               parts_.size);
    parts_.mapped = true;
    let(gpu_);
  }

  void let(const Gpu& user) {
    const Current current(gpu_);  // one that is in use: the user need not be
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {user.number()}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    api_.check(api_.cuMemSetAccess(parts_.address, parts_.size, &access, 1),
               "let GPU {} reach memory of GPU {}", user.number(), owner_);
    gpus_.note(parts_.address, users_ |= only(user.number()));
  }

  Gpus& gpus_;
  Gpu& gpu_;
  const Api& api_;
  Parts parts_;
  std::uint64_t bytes_ = 0;
  int owner_ = 0;  // the device that it lies on
  DeviceSet users_ = 0;
};

}  // namespace

std::unique_ptr<DeviceMemory> allocate_mapped(Gpus& gpus, Gpu& gpu, std::uint64_t bytes) {
  auto memory = std::make_unique<MappedMemory>(gpus, gpu);
  const Current current(gpu);
  memory->create(bytes);
  return memory;
}

std::unique_ptr<DeviceMemory> open_mapped(Gpus& gpus, Gpu& gpu, const MemoryHandle& handle) {
  auto memory = std::make_unique<MappedMemory>(gpus, gpu);
  const Current current(gpu);
  memory->import(handle);
  return memory;
}

}  // namespace khoro::cuda_driver
