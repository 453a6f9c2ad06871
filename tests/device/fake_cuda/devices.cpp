// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/fake_cuda/fake.h"

using namespace fake_cuda;

namespace {

std::atomic<int> calls = 0;
std::atomic<int> failing = 0;
thread_local std::vector<CUcontext> stack;

int device_count() { return number_of("FAKE_CUDA_DEVICES", 2); }

}  // namespace

namespace fake_cuda {

State& state() {
  static State& state = *new State;
  return state;
}

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

CUresult enter() { return ++calls == failing ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS; }

CUresult enter(CUcontext* context) {
  *context = current();
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  return *context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUcontext current() { return stack.empty() ? nullptr : stack.back(); }

}  // namespace fake_cuda

extern "C" {

/// The call of that number, counted from now, fails; 0: none.
void fake_cuda_fail_at(int call) {
  calls = 0;
  failing = call;
}

/// How many calls there were since.
int fake_cuda_calls() { return calls; }

/// How many things there are that somebody has made and not ended.
int fake_cuda_open() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  int open = all.events + all.modules;
  for (const auto& [device, count] : all.retained) open += count;
  return open + static_cast<int>(all.physical.size() + all.reserved.size() + all.regions.size() +
                                 all.streams.size());
}

CUresult cuInit(unsigned) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  return device_count() == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  *version = number_of("FAKE_CUDA_VERSION", CUDA_VERSION);
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "FAKE_ERROR";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** words) {
  *words = "as the fake has it";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int number) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  if (number >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = number;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int room, CUdevice device) {
  std::snprintf(name, static_cast<std::size_t>(room), "Fake GPU %d", device);
  return enter();
}

CUresult cuDeviceGetPCIBusId(char* name, int room, CUdevice device) {
  std::snprintf(name, static_cast<std::size_t>(room), "0000:A%d:00.0", device);
  return enter();
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  *bytes = memory_bytes;
  return enter();
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 7;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      *value = number_of("FAKE_CUDA_MAPPED", 1);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  *can = device != peer && number_of("FAKE_CUDA_REACH", 1) != 0;
  return enter();
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  ++state().retained[device];
  *context = &state().contexts[device];
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  std::unique_ptr<CUstream_st> ending;  // waits for its work without the lock
  const std::lock_guard lock(state().mutex);
  if (--state().retained[device] > 0) return CUDA_SUCCESS;
  ending = std::move(state().defaults[&state().contexts[device]]);
  for (int peer = 0; peer < 8; ++peer) state().peers.erase({device, peer});
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  if (const CUresult result = enter(); result != CUDA_SUCCESS) return result;
  stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current();
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(&context); result != CUDA_SUCCESS) return result;
  if (number_of("FAKE_CUDA_REACH", 1) == 0) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::lock_guard lock(state().mutex);
  const bool is_new = state().peers.emplace(context->device, peer->device).second;
  return is_new ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

}  // extern "C"
