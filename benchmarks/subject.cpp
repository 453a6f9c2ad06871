// SPDX-License-Identifier: Apache-2.0
#include "subject.h"

#include <fmt/format.h>

#include "ranks.h"

namespace khoro::benchmark {

void check_devices(const Options& options) {
  if (options.device == khoroMemoryHost) return;
  int count = 0;
  const std::string what = fmt::format("--device {}", word_of(options.device));
  check(khoroDeviceCount(options.device, &count), what);
  if (count == 0) throw Failure(what + ": there is no GPU");
}

Subject::Subject(khoroComm_t joined, const Options& options)
    : joined_(joined), blocks_(options.blocking || options.latency || options.null_stream == true) {
  khoroMemory_t memory = khoroMemoryHost;
  check(khoroCommDevice(joined, &memory, nullptr), "khoroCommDevice", joined);
  if (memory != khoroMemoryHost)
    throw Failure("KHORO_MEMORY: ranks meet on memory of the host; choose GPUs by --device alone");
  if (options.device == khoroMemoryHost) return;

  int rank = 0;
  check(khoroCommUserRank(joined, &rank), "khoroCommUserRank", joined);
  const std::string settings = fmt::format("KHORO_MEMORY={}", word_of(options.device));
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = settings.c_str();
  const std::string what = fmt::format("--device {}", word_of(options.device));
  check(khoroCommSplit(joined, 0, rank, &on_gpu_, &config), what, joined);
  try {
    check(khoroCommDevice(on_gpu_, &gpu_.memory, &gpu_.device), "khoroCommDevice", on_gpu_);
    if (gpu_.memory != options.device)
      throw Failure(what + ": KHORO_MEMORY of the environment says otherwise");
    check(khoroDeviceStreamCreate(&gpu_.stream, gpu_.memory, gpu_.device),
          "khoroDeviceStreamCreate");
  } catch (...) {
    (void)khoroCommDestroy(on_gpu_);
    throw;
  }
}

Subject::~Subject() {
  if (gpu_) (void)khoroStreamDestroy(gpu_.stream);
  if (on_gpu_) (void)khoroCommDestroy(on_gpu_);
}

void Subject::finish() {
  if (!gpu_) return;
  check(khoroStreamSynchronize(gpu_.stream), "khoroStreamSynchronize");
  khoroResult_t error = khoroSuccess;
  check(khoroCommGetAsyncError(on_gpu_, &error), "khoroCommGetAsyncError", on_gpu_);
  check(error, "a call on a stream", on_gpu_);
}

void Subject::abort() noexcept {
  (void)khoroCommAbort(comm());
  if (gpu_) (void)khoroStreamSynchronize(gpu_.stream);
}

}  // namespace khoro::benchmark
