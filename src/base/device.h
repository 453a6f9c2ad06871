// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only file that asks which compiler is looking. What a CUDA kernel and a host thread share is
// written against it.

#include <atomic>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda/atomic>
#define KHORO_HD __host__ __device__
#define KHORO_NOINLINE __noinline__
#define KHORO_ROLLED _Pragma("unroll 1")
#else
#define KHORO_HD
#define KHORO_NOINLINE [[gnu::noinline]]
#define KHORO_ROLLED  // before a loop: short code is worth more than a fast loop
#endif

namespace khoro {

/// Makes everything written before it visible to whoever observes `value` in `flag` (pairs with
/// observe()).
template <class Word>
KHORO_HD inline void publish(Word& flag, Word value) noexcept {
#ifdef __CUDA_ARCH__
  cuda::atomic_ref<Word, cuda::thread_scope_system>(flag).store(value, cuda::memory_order_release);
#else
  std::atomic_ref<Word>(flag).store(value, std::memory_order_release);
#endif
}

/// Reads `flag`; what was written before the publish() of the value read is visible after it.
template <class Word>
KHORO_HD inline Word observe(Word& flag) noexcept {
#ifdef __CUDA_ARCH__
  return cuda::atomic_ref<Word, cuda::thread_scope_system>(flag).load(cuda::memory_order_acquire);
#else
  return std::atomic_ref<Word>(flag).load(std::memory_order_acquire);
#endif
}

/// The same without order: for a word that carries its own data.
template <class Word>
KHORO_HD inline void publish_alone(Word& word, Word value) noexcept {
#ifdef __CUDA_ARCH__
  cuda::atomic_ref<Word, cuda::thread_scope_system>(word).store(value, cuda::memory_order_relaxed);
#else
  std::atomic_ref<Word>(word).store(value, std::memory_order_relaxed);
#endif
}
template <class Word>
KHORO_HD inline Word observe_alone(Word& word) noexcept {
#ifdef __CUDA_ARCH__
  return cuda::atomic_ref<Word, cuda::thread_scope_system>(word).load(cuda::memory_order_relaxed);
#else
  return std::atomic_ref<Word>(word).load(std::memory_order_relaxed);
#endif
}

}  // namespace khoro
