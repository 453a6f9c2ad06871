// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "device/fake_cuda/fake.h"

using namespace fake_cuda;

namespace {

CUdeviceptr mapped(void* at) { return reinterpret_cast<CUdeviceptr>(at); }
void* at(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// With the lock held.
CUresult create(std::uint64_t* handle, std::size_t bytes, int device) {
  State& all = state();
  if (bytes > memory_bytes - all.taken[device]) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::string name = "fake-cuda-" + std::to_string(device);
  const int descriptor = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) std::abort();
  all.taken[device] += bytes;
  *handle = all.next_physical++;
  all.physical[*handle] = {descriptor, bytes, device, true};
  return CUDA_SUCCESS;
}

void release(std::uint64_t handle) {
  State& all = state();
  const Physical gone = all.physical.at(handle);
  if (gone.counts) all.taken[gone.device] -= gone.bytes;
  ::close(gone.descriptor);
  all.physical.erase(handle);
}

/// Takes over a descriptor of memory that create() made, in whatever process.
CUresult adopt(std::uint64_t* handle, int descriptor) {
  char name[64] = {};
  struct stat status {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (descriptor < 0 || ::readlink(link.c_str(), name, sizeof name - 1) < 0 ||
      std::strncmp(name, "/memfd:fake-cuda-", 17) != 0 || ::fstat(descriptor, &status) != 0) {
    if (descriptor >= 0) ::close(descriptor);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  *handle = state().next_physical++;
  state().physical[*handle] = {descriptor, static_cast<std::size_t>(status.st_size),
                               std::atoi(name + 17), false};
  return CUDA_SUCCESS;
}

void* map(const Physical& memory, void* where, int protection) {
  void* const mapped =
      ::mmap(where, memory.bytes, protection, MAP_SHARED | (where == nullptr ? 0 : MAP_FIXED),
             memory.descriptor, 0);
  if (mapped == MAP_FAILED) std::abort();
  return mapped;
}

const std::pair<const CUdeviceptr, Region>* find(CUdeviceptr address) {
  const auto after = state().regions.upper_bound(address);
  if (after == state().regions.begin()) return nullptr;
  const auto& found = *std::prev(after);
  return address - found.first < found.second.bytes ? &found : nullptr;
}

bool reaches(const Region& region, int device) {
  return region.users.count(device) > 0 || state().peers.count({device, region.device}) > 0;
}

void end_region(CUdeviceptr address) {
  const Region gone = state().regions.at(address);
  ::munmap(at(address), gone.bytes);
  release(gone.physical);
  state().regions.erase(address);
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = page_bytes;
  return enter();
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* kind, unsigned long long) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (bytes % page_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state().mutex);
  std::uint64_t made = 0;
  const CUresult result = create(&made, bytes, kind->location.id);
  *handle = made;
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  release(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (bytes % page_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  void* const reserved =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(state().mutex);
  *address = mapped(reserved);
  state().reserved[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (state().reserved[address] != bytes || find(address) != nullptr) std::abort();
  ::munmap(at(address), bytes);
  state().reserved.erase(address);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const Physical& memory = state().physical.at(handle);
  if (bytes != memory.bytes || offset != 0 || state().reserved[address] != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  map(memory, at(address), PROT_NONE);
  state().regions[address] = {bytes, CU_MEMORYTYPE_DEVICE, memory.device, {}, 0};
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  state().regions.erase(address);
  (void)::mmap(at(address), bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  Region& region = state().regions.at(address);
  const bool can = access->location.id == region.device || number_of("FAKE_CUDA_REACH", 1) != 0;
  if (!can || region.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  region.users.insert(access->location.id);
  ::mprotect(at(address), bytes, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* handle, CUmemGenericAllocationHandle memory,
                                      CUmemAllocationHandleType, unsigned long long) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  *static_cast<int*>(handle) = ::fcntl(state().physical.at(memory).descriptor, F_DUPFD_CLOEXEC, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                        CUmemAllocationHandleType) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const int number = static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor));
  std::uint64_t made = 0;
  const CUresult result = adopt(&made, ::fcntl(number, F_DUPFD_CLOEXEC, 0));
  *handle = made;
  return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* kind,
                                                CUmemGenericAllocationHandle handle) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  kind->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  kind->location.id = state().physical.at(handle).device;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  std::uint64_t handle = 0;
  const CUresult result = create(&handle, bytes, context->device);
  if (result != CUDA_SUCCESS) return result;
  *address = mapped(map(state().physical.at(handle), nullptr, PROT_READ | PROT_WRITE));
  state().regions[*address] = {
      bytes, CU_MEMORYTYPE_DEVICE, context->device, {context->device}, handle};
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  end_region(address);
  return CUDA_SUCCESS;
}

struct Name {
  pid_t process;
  int descriptor;
};

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const auto& physical = state().physical.at(state().regions.at(address).physical);
  const Name name{::getpid(), physical.descriptor};
  std::memcpy(handle, &name, sizeof name);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(&context); result != CUDA_SUCCESS) return result;
  Name name{};
  std::memcpy(&name, &handle, sizeof name);
  if (name.process == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::string path =
      "/proc/" + std::to_string(name.process) + "/fd/" + std::to_string(name.descriptor);
  const std::lock_guard lock(state().mutex);
  std::uint64_t made = 0;
  const CUresult result = adopt(&made, ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (result != CUDA_SUCCESS) return result;
  const Physical& memory = state().physical.at(made);
  *address = mapped(map(memory, nullptr, PROT_READ | PROT_WRITE));
  state().regions[*address] = {
      memory.bytes, CU_MEMORYTYPE_DEVICE, memory.device, {context->device}, made};
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) { return cuMemFree(address); }

CUresult cuMemHostRegister(void* memory, std::size_t bytes, unsigned) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  if (find(mapped(memory)) != nullptr) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  state().regions[mapped(memory)] = {
      bytes, CU_MEMORYTYPE_HOST, context->device, {0, 1, 2, 3, 4, 5, 6, 7}, 0};
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* memory) {
  const std::lock_guard lock(state().mutex);
  state().regions.erase(mapped(memory));
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const auto* const found = find(address);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(data[i]) = found == nullptr ? 0 : found->second.type;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<bool*>(data[i]) = false;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(data[i]) = found == nullptr ? -2 : found->second.device;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<CUdeviceptr*>(data[i]) = found == nullptr ? 0 : found->first;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *static_cast<std::size_t*>(data[i]) = found == nullptr ? 0 : found->second.bytes;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *static_cast<CUdeviceptr*>(data[i]) = found == nullptr ? 0 : address;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  const auto* const found = find(address);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_POINTER_ATTRIBUTE_ACCESS_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned*>(data) = reaches(found->second, context->device)
                                      ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                      : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  return CUDA_SUCCESS;
}

}  // extern "C"
