// SPDX-License-Identifier: Apache-2.0
#include "buffer.h"

#include <new>

#include "ranks.h"

namespace khoro::benchmark {

Buffer::Buffer(std::size_t bytes, Kind kind, const Gpu& gpu)
    : bytes_(bytes + 2 * page), memory_(allocate(bytes_, kind), Free{kind}), gpu_(gpu) {
  prepare(bytes);
  if (!gpu) return;
  void* memory = nullptr;
  check(khoroDeviceAlloc(&memory, bytes_, gpu.memory, gpu.device), "khoroDeviceAlloc");
  on_gpu_.reset(static_cast<std::byte*>(memory));
}

void Buffer::give(std::size_t used) { copy(in_calls(), data(), used); }

void Buffer::fetch(std::size_t used) { copy(data(), in_calls(), used); }

void Buffer::copy(std::byte* to, const std::byte* from, std::size_t used) {
  if (!gpu_) return;
  check(khoroDeviceCopy(to - guard, from - guard, used + 2 * guard, gpu_.stream),
        "khoroDeviceCopy");
  check(khoroStreamSynchronize(gpu_.stream), "khoroStreamSynchronize");
}

std::byte* Buffer::allocate(std::size_t bytes, Kind kind) {
  if (kind == Kind::of_process)
    return static_cast<std::byte*>(::operator new(bytes, std::align_val_t(page)));
  void* memory = nullptr;
  if (khoroMemAlloc(&memory, bytes) != khoroSuccess) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

void Buffer::Free::operator()(std::byte* memory) const noexcept {
  if (kind == Kind::of_process)
    ::operator delete(memory, std::align_val_t(page));
  else
    (void)khoroMemFree(memory);
}

}  // namespace khoro::benchmark
