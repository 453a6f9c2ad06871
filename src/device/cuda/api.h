// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace khoro::cuda_driver {

/// What is used of CUDA's driver. The toolkit's header gives the types, and the versions of names.
#define KHORO_CUDA_CALLS(each)                                                                     \
  each(cuInit) each(cuDriverGetVersion) each(cuGetErrorName) each(cuGetErrorString) each(          \
      cuDeviceGet) each(cuDeviceGetCount) each(cuDeviceGetName) each(cuDeviceGetPCIBusId)          \
      each(cuDeviceTotalMem) each(cuDeviceGetAttribute) each(cuDeviceCanAccessPeer) each(          \
          cuDevicePrimaryCtxRetain) each(cuDevicePrimaryCtxRelease) each(cuCtxPushCurrent)         \
          each(cuCtxPopCurrent) each(cuCtxEnablePeerAccess) each(cuMemGetAllocationGranularity)    \
              each(cuMemCreate) each(cuMemRelease) each(cuMemAddressReserve) each(                 \
                  cuMemAddressFree) each(cuMemMap) each(cuMemUnmap) each(cuMemSetAccess)           \
                  each(cuMemExportToShareableHandle) each(cuMemImportFromShareableHandle) each(    \
                      cuMemGetAllocationPropertiesFromHandle) each(cuMemAlloc) each(cuMemFree)     \
                      each(cuIpcGetMemHandle) each(cuIpcOpenMemHandle) each(                       \
                          cuIpcCloseMemHandle) each(cuMemHostRegister) each(cuMemHostUnregister)   \
                          each(cuPointerGetAttribute) each(cuPointerGetAttributes) each(           \
                              cuStreamCreate) each(cuStreamDestroy) each(cuStreamQuery)            \
                              each(cuStreamSynchronize) each(cuStreamGetCtx) each(                 \
                                  cuStreamWaitEvent) each(cuMemcpyAsync) each(cuMemsetD8Async)     \
                                  each(cuLaunchKernel) each(cuLaunchHostFunc) each(cuEventCreate)  \
                                      each(cuEventDestroy) each(cuEventRecord) each(cuEventQuery)  \
                                          each(cuEventSynchronize) each(cuModuleLoadData)          \
                                              each(cuModuleUnload) each(cuModuleGetFunction) each( \
                                                  cuFuncGetAttribute) each(cuFuncSetAttribute)     \
                                                  each(                                            \
                                                      cuOccupancyMaxActiveBlocksPerMultiprocessor)

/// CUDA's driver, found when the process runs. Kept for as long as the process lives: threads of it
/// may run that do not end.
class Api {
 public:
  /// Nothing if this machine has no driver that does what is needed here; says why.
  static std::optional<Api> open(std::string& why_not);

  /// Throws `Error`, whose message says what was being `done` and CUDA's words, unless all is well.
  template <class... Args>
  void check(CUresult result, fmt::format_string<Args...> done, Args&&... args) const {
    if (result != CUDA_SUCCESS) fail(result, fmt::format(done, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail(CUresult result, const std::string& done) const;
  /// CUDA's name of a failure, and its words for it.
  std::string words_of(CUresult result) const;

#define KHORO_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  KHORO_CUDA_CALLS(KHORO_CUDA_MEMBER)
#undef KHORO_CUDA_MEMBER
};

/// For what ends, and can do nothing about failures.
template <class Function>
void quietly(Function&& function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    log(LogLevel::trace, "cuda: {}", error.what());
  }
}

}  // namespace khoro::cuda_driver
