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

#ifdef __CUDA_ARCH__
namespace atomics = cuda;
template <class Word>
using SharedWord = cuda::atomic_ref<Word, cuda::thread_scope_system>;
#else
namespace atomics = std;
/// A word that other threads, processes and devices read and write.
template <class Word>
using SharedWord = std::atomic_ref<Word>;
#endif

/// Makes everything written before it visible to whoever observes `value` in `flag` (pairs with
/// observe()).
template <class Word>
KHORO_HD inline void publish(Word& flag, Word value) noexcept {
  SharedWord<Word>(flag).store(value, atomics::memory_order_release);
}

/// Reads `flag`; what was written before the publish() of the value read is visible after it.
template <class Word>
KHORO_HD inline Word observe(Word& flag) noexcept {
  return SharedWord<Word>(flag).load(atomics::memory_order_acquire);
}

/// Adds 1 to `count` as one who publishes does, and observes those who did so before.
KHORO_HD inline void arrive(std::uint32_t& count) noexcept {
  SharedWord<std::uint32_t>(count).fetch_add(1, atomics::memory_order_acq_rel);
}

/// Stores and loads without order: for a word that carries its own data.
template <class Word>
KHORO_HD inline void publish_alone(Word& word, Word value) noexcept {
  SharedWord<Word>(word).store(value, atomics::memory_order_relaxed);
}
template <class Word>
KHORO_HD inline Word observe_alone(Word& word) noexcept {
  return SharedWord<Word>(word).load(atomics::memory_order_relaxed);
}

}  // namespace khoro
