// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string_view>

#include "device/fake_cuda/fake.h"

using namespace fake_cuda;

struct CUfunc_st {
  int most_shared_bytes = 48 << 10;
};
struct CUmod_st {
  CUfunc_st store;
};

CUstream_st::CUstream_st(CUcontext of) : context(of), thread_([this] { run(); }) {}

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    progress_.notify_all();
  }
  thread_.join();
}

void CUstream_st::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  progress_.notify_all();
}

bool CUstream_st::idle() {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

void CUstream_st::synchronize() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return tasks_.empty(); });
}

void CUstream_st::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    progress_.wait(lock, [&] { return !tasks_.empty() || ending_; });
    if (tasks_.empty()) return;
    std::function<void()>& task = tasks_.front();
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
    progress_.notify_all();
  }
}

namespace {

/// The stream that a call means, of the context that is current.
CUresult enter(CUstream* stream) {
  CUcontext context = nullptr;
  if (const CUresult result = fake_cuda::enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  if (*stream == nullptr) {
    std::unique_ptr<CUstream_st>& made = state().defaults[context];
    if (made == nullptr) made = std::make_unique<CUstream_st>(context);
    *stream = made.get();
    return CUDA_SUCCESS;
  }
  if (state().streams.count(*stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  return (*stream)->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

bool complete(const EventMark& mark) { return mark.reached >= mark.recorded; }

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  CUcontext context = nullptr;
  if (const CUresult result = fake_cuda::enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  *stream = new CUstream_st(context);
  state().streams.insert(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  {
    const std::lock_guard lock(state().mutex);
    if (state().streams.erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  }
  delete stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  if (state().streams.count(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  *context = stream->context;
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  return stream->idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  stream->synchronize();
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  stream->push([to, from, bytes] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  stream->push([to, value, bytes] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  stream->push([function, data] { function(data); });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  CUcontext context = nullptr;
  if (const CUresult result = fake_cuda::enter(&context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(state().mutex);
  *event = new CUevent_st;
  ++state().events;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  const std::lock_guard lock(state().mutex);
  delete event;
  --state().events;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  EventMark& mark = *event->mark;
  const std::lock_guard lock(mark.mutex);
  stream->push([kept = event->mark, record = ++mark.recorded] {
    const std::lock_guard reaching(kept->mutex);
    kept->reached = std::max(kept->reached, record);
    kept->progress.notify_all();
  });
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  EventMark& mark = *event->mark;
  const std::lock_guard lock(mark.mutex);
  stream->push([kept = event->mark, record = mark.recorded] {
    std::unique_lock waiting(kept->mutex);
    kept->progress.wait(waiting, [&] { return kept->reached >= record; });
  });
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(event->mark->mutex);
  return complete(*event->mark) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  EventMark& mark = *event->mark;
  std::unique_lock lock(mark.mutex);
  mark.progress.wait(lock, [&] { return complete(mark); });
  return CUDA_SUCCESS;
}

/// An image is the text "fake", and has one kernel.
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  CUcontext context = nullptr;
  if (const CUresult result = fake_cuda::enter(&context); result != CUDA_SUCCESS) return result;
  if (std::memcmp(image, "fake", 4) != 0) return CUDA_ERROR_INVALID_IMAGE;
  const std::lock_guard lock(state().mutex);
  *module = new CUmod_st;
  ++state().modules;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  const std::lock_guard lock(state().mutex);
  delete module;
  --state().modules;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  if (std::string_view(name) != "store") return CUDA_ERROR_NOT_FOUND;
  *function = &module->store;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  *value = 1 << 10;
  return attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 226 << 10)
    return CUDA_ERROR_INVALID_VALUE;
  function->most_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     std::size_t shared_bytes) {
  if (const CUresult result = fake_cuda::enter(); result != CUDA_SUCCESS) return result;
  const bool fits =
      threads <= 1024 && shared_bytes <= static_cast<std::size_t>(function->most_shared_bytes);
  *blocks = fits ? 2048 / threads : 0;
  return CUDA_SUCCESS;
}

/// Stores the shape of the launch where its arguments say.
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads,
                        unsigned, unsigned, unsigned shared_bytes, CUstream stream, void** parts,
                        void** extra) {
  if (const CUresult result = enter(&stream); result != CUDA_SUCCESS) return result;
  std::uint64_t* where = nullptr;
  const bool given = parts == nullptr && extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER &&
                     extra[2] == CU_LAUNCH_PARAM_BUFFER_SIZE &&
                     *static_cast<std::size_t*>(extra[3]) == sizeof where &&
                     extra[4] == CU_LAUNCH_PARAM_END;
  if (!given || threads > 1024 || shared_bytes > static_cast<unsigned>(function->most_shared_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(&where, extra[1], sizeof where);
  stream->push([where, blocks, threads, shared_bytes] {
    where[0] = blocks;
    where[1] = threads;
    where[2] = shared_bytes;
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
