// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/stream.h"

#include <array>
#include <cstdint>

#include "base/error.h"

namespace khoro::cuda_driver {
namespace {

const Event& cuda_event(const DeviceEvent& event) {
  const auto* const found = dynamic_cast<const Event*>(&event);
  if (found == nullptr) throw Error(Code::invalid_argument, "an event of another driver");
  return *found;
}

/// What a stream is to call, once.
struct HostCall {
  std::function<void()> function;
  std::shared_ptr<StreamFailure> failure;

  static void run(void* call) noexcept {
    const std::unique_ptr<HostCall> owned(static_cast<HostCall*>(call));
    owned->failure->watch(owned->function);
  }
};

}  // namespace

Event::Event(Gpu& gpu) : gpu_(gpu), api_(gpu.api()) {
  const Current current(gpu);
  api_.check(api_.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), "make an event of GPU {}",
             gpu.number());
}

Event::~Event() {
  end_quietly(gpu_, [&] {
    api_.check(api_.cuEventDestroy(event_), "end an event of GPU {}", gpu_.number());
  });
}

bool Event::complete() const {
  const Current current(gpu_);
  const CUresult result = api_.cuEventQuery(event_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  api_.check(result, "ask for an event of GPU {}", gpu_.number());
  return true;
}

void Event::synchronize() const {
  const Current current(gpu_);
  api_.check(api_.cuEventSynchronize(event_), "wait for an event of GPU {}", gpu_.number());
}

std::unique_ptr<Stream> Stream::borrow(Gpu& gpu, CUstream stream) {
  // The default streams belong to the context that is current.
  const bool is_default =
      stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (!is_default) {
    const Current current(gpu);
    CUcontext context = nullptr;
    const CUresult result = gpu.api().cuStreamGetCtx(stream, &context);
    if (result != CUDA_SUCCESS || context != gpu.context())
      throw Error(Code::invalid_argument,
                  fmt::format("{} is not a stream of the primary context of GPU {}",
                              static_cast<const void*>(stream), gpu.number()));
  }
  return std::unique_ptr<Stream>(new Stream(gpu, stream));
}

template <class Function>
void Stream::with_api(Function&& function) const {
  failure_->check();
  const Current current(gpu_);
  function(gpu_.api());
}

void Stream::copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  with_api([&](const Api& api) {
    if (bytes > 0)
      api.check(api.cuMemcpyAsync(to, from, bytes, stream_), "copy {} bytes from {:#x} to {:#x}",
                bytes, from, to);
  });
}

void Stream::fill(DeviceAddress to, std::byte value, std::uint64_t bytes) {
  with_api([&](const Api& api) {
    if (bytes > 0)
      api.check(api.cuMemsetD8Async(to, std::to_integer<unsigned char>(value), bytes, stream_),
                "fill {} bytes at {:#x}", bytes, to);
  });
}

void Stream::launch(const Launch& launch) {
  const auto* const kernel = dynamic_cast<const ModuleKernel*>(launch.kernel);
  if (kernel == nullptr || &kernel->gpu() != &gpu_)
    throw Error(Code::invalid_argument, "a kernel of another device");
  if (launch.blocks < 1 || launch.threads < 1)
    throw Error(Code::invalid_argument, "a launch of no block");
  std::size_t bytes = launch.arguments.size();
  auto* const arguments = const_cast<std::byte*>(launch.arguments.data());  // are only read
  std::array<void*, 5> extra = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments,
                                CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  with_api([&](const Api& api) {
    api.check(api.cuLaunchKernel(kernel->function(), static_cast<unsigned>(launch.blocks), 1, 1,
                                 static_cast<unsigned>(launch.threads), 1, 1, launch.shared_bytes,
                                 stream_, nullptr, extra.data()),
              "launch {} blocks of {} threads with {} bytes of shared memory on GPU {}",
              launch.blocks, launch.threads, launch.shared_bytes, gpu_.number());
  });
}

void Stream::record(DeviceEvent& event) {
  with_api([&](const Api& api) {
    api.check(api.cuEventRecord(cuda_event(event).native(), stream_), "record an event on GPU {}",
              gpu_.number());
  });
}

void Stream::wait(const DeviceEvent& event) {
  with_api([&](const Api& api) {
    api.check(api.cuStreamWaitEvent(stream_, cuda_event(event).native(), CU_EVENT_WAIT_DEFAULT),
              "have GPU {} wait for an event", gpu_.number());
  });
}

void Stream::call(std::function<void()> function) {
  with_api([&](const Api& api) {
    auto call = std::make_unique<HostCall>(HostCall{std::move(function), failure_});
    api.check(api.cuLaunchHostFunc(stream_, &HostCall::run, call.get()),
              "have a function called behind work of GPU {}", gpu_.number());
    (void)call.release();  // run() has it now
  });
}

bool Stream::idle() const {
  bool idle = true;
  with_api([&](const Api& api) {
    const CUresult result = api.cuStreamQuery(stream_);
    idle = result != CUDA_ERROR_NOT_READY;
    if (idle) api.check(result, "ask for work of GPU {}", gpu_.number());
  });
  failure_->check();
  return idle;
}

void Stream::synchronize() const {
  with_api([&](const Api& api) {
    api.check(api.cuStreamSynchronize(stream_), "wait for work of GPU {}", gpu_.number());
  });
  failure_->check();
}

CUstream OwnStream::make(Gpu& gpu) {
  const Current current(gpu);
  CUstream stream = nullptr;
  gpu.api().check(gpu.api().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                  "make a stream of GPU {}", gpu.number());
  return stream;
}

OwnStream::~OwnStream() {
  auto* const stream = static_cast<CUstream>(native());
  const Api& api = gpu().api();
  end_quietly(gpu(), [&] {
    quietly([&] {
      api.check(api.cuStreamSynchronize(stream), "wait for work of GPU {}", gpu().number());
    });
    api.check(api.cuStreamDestroy(stream), "end a stream of GPU {}", gpu().number());
  });
}

}  // namespace khoro::cuda_driver
