// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/api.h"

#include <dlfcn.h>

#include "base/error.h"

namespace khoro::cuda_driver {
namespace {

// A driver runs what toolkits of its major version, and of older ones, have made.
constexpr int least_version = CUDA_VERSION / 1000 * 1000;

std::string version_words(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

template <class Function>
void find(void* library, Function*& function, const char* name, const char*& missing) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr) missing = name;
}

/// Why a driver is of no use; empty if it is of some. `missing`: a function that it lacks.
std::string fault_of(const Api& api, const char* missing) {
  int version = 0;
  if (api.cuDriverGetVersion == nullptr || api.cuDriverGetVersion(&version) != CUDA_SUCCESS)
    return "libcuda.so.1 does not say which version it has";
  if (version < least_version)
    return fmt::format("the driver of GPUs is for CUDA {}, and this build needs {} or newer",
                       version_words(version), version_words(least_version));
  if (missing != nullptr)
    return fmt::format("the driver of GPUs, for CUDA {}, lacks {}", version_words(version),
                       missing);
  const CUresult result = api.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) return "there is a driver of GPUs, but no GPU";
  if (result != CUDA_SUCCESS) return "the driver of GPUs does not start: " + api.words_of(result);
  return {};
}

}  // namespace

std::optional<Api> Api::open(std::string& why_not) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why_not = fmt::format("no driver of GPUs is installed: {}", ::dlerror());
    return std::nullopt;
  }
  Api api;
  const char* missing = nullptr;
// In two steps: the names are macros themselves.
#define KHORO_TEXT(name) #name
#define KHORO_CUDA_FIND(name) find(library, api.name, KHORO_TEXT(name), missing);
  KHORO_CUDA_CALLS(KHORO_CUDA_FIND)
#undef KHORO_CUDA_FIND
#undef KHORO_TEXT
  why_not = fault_of(api, missing);
  if (!why_not.empty()) return std::nullopt;
  return api;
}

std::string Api::words_of(CUresult result) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("error {}", static_cast<int>(result));
  (void)cuGetErrorString(result, &words);
  return words == nullptr ? name : fmt::format("{}, {}", name, words);
}

void Api::fail(CUresult result, const std::string& done) const {
  const Code code =
      result == CUDA_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::unhandled_device_error;
  throw Error(code, fmt::format("cannot {}: {}", done, words_of(result)));
}

}  // namespace khoro::cuda_driver
