// SPDX-License-Identifier: Apache-2.0
// A one-shot allreduce of floats of two ranks on one GPU, written by hand: what the interpreter of
// plans is compared with. Built with nvcc; needs nothing of Khoro.
//
// usage: one_shot BYTES...
//
// For each size a line: the bytes, the microseconds of a call among many that each rank, a thread,
// has queued on its stream, and which kernel it was: the best of two kernels with some numbers of
// blocks.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int threads_of_block = 512;
constexpr int calls = 1000;
constexpr int rounds = 3;
constexpr int block_counts[] = {1, 2, 4, 8, 16, 32};
constexpr int most_blocks = 32;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "one_shot: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

/// What a rank has. Others write to its inbox and flags; calls take the two halves in turn, so that
/// none needs to be told that a half is free: who has the flag of call n knows that its peer has
/// ended call n - 1.
struct Rank {
  float* input;
  float* output;
  std::byte* inbox[2];
  std::uint32_t* flags;  // of blocks, for messages without flags of their own
};

struct Call {
  Rank mine;
  Rank peer;
  std::uint32_t number;
  std::uint32_t floats;  // a multiple of 4
};

__device__ std::uint32_t acquire(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ void release(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

/// Each 8 bytes are a float and the number of the call, so that data says when it is there.
__global__ void __launch_bounds__(threads_of_block) flagged(const __grid_constant__ Call call) {
  const std::uint32_t half = call.number & 1;
  auto* const out = reinterpret_cast<uint4*>(call.peer.inbox[half]);
  const auto* const in = reinterpret_cast<const uint4*>(call.mine.inbox[half]);
  const auto* const input = reinterpret_cast<const float2*>(call.mine.input);
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t step = gridDim.x * blockDim.x;
  for (std::uint32_t i = first; i < call.floats / 2; i += step) {
    const float2 sent = input[i];
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(out + i), "r"(__float_as_uint(sent.x)), "r"(call.number),
                   "r"(__float_as_uint(sent.y)), "r"(call.number)
                 : "memory");
  }
  for (std::uint32_t i = first; i < call.floats / 2; i += step) {
    uint4 got;
    do {
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(got.x), "=r"(got.y), "=r"(got.z), "=r"(got.w)
                   : "l"(in + i)
                   : "memory");
    } while (got.y != call.number || got.w != call.number);
    const float2 own = input[i];
    reinterpret_cast<float2*>(call.mine.output)[i] =
        make_float2(own.x + __uint_as_float(got.x), own.y + __uint_as_float(got.z));
  }
}

/// Each block sends its part, then says so.
__global__ void __launch_bounds__(threads_of_block) plain(const __grid_constant__ Call call) {
  const std::uint32_t half = call.number & 1;
  auto* const out = reinterpret_cast<float4*>(call.peer.inbox[half]);
  const auto* const in = reinterpret_cast<const float4*>(call.mine.inbox[half]);
  const auto* const input = reinterpret_cast<const float4*>(call.mine.input);
  const std::uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t step = gridDim.x * blockDim.x;
  for (std::uint32_t i = first; i < call.floats / 4; i += step) out[i] = input[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    release(call.peer.flags + blockIdx.x, call.number);
    // The peer may be a call ahead.
    while (static_cast<std::int32_t>(acquire(call.mine.flags + blockIdx.x) - call.number) < 0) {
    }
  }
  __syncthreads();
  for (std::uint32_t i = first; i < call.floats / 4; i += step) {
    const float4 own = input[i], got = __ldcv(in + i);
    reinterpret_cast<float4*>(call.mine.output)[i] =
        make_float4(own.x + got.x, own.y + got.y, own.z + got.z, own.w + got.w);
  }
}

using Kernel = void (*)(Call);
struct Variant {
  const char* name;
  Kernel kernel;
};
constexpr Variant variants[] = {{"flagged", flagged}, {"plain", plain}};

template <class T>
T* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  check(cudaMemset(memory, 0, bytes), "cudaMemset");
  return static_cast<T*>(memory);
}

/// Of two ranks, zeroed.
struct Pair {
  explicit Pair(std::size_t bytes) {
    for (int i = 0; i < 2; ++i) {
      ranks[i] = {allocate<float>(bytes),
                  allocate<float>(bytes),
                  {allocate<std::byte>(2 * bytes), allocate<std::byte>(2 * bytes)},
                  allocate<std::uint32_t>(most_blocks * sizeof(std::uint32_t))};
      check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "cudaStreamCreate");
      const std::vector<float> values(bytes / sizeof(float), i == 0 ? 1.5f : 2.0f);
      check(cudaMemcpy(ranks[i].input, values.data(), bytes, cudaMemcpyDefault), "cudaMemcpy");
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Pair() {
    for (int i = 0; i < 2; ++i) {
      cudaStreamDestroy(streams[i]);
      for (void* memory :
           {static_cast<void*>(ranks[i].input), static_cast<void*>(ranks[i].output),
            static_cast<void*>(ranks[i].inbox[0]), static_cast<void*>(ranks[i].inbox[1]),
            static_cast<void*>(ranks[i].flags)})
        cudaFree(memory);
    }
  }
  Rank ranks[2];
  cudaStream_t streams[2];
};

/// Of a call; the least of some rounds, the first of which warms up.
double seconds_of_call(Pair& pair, Kernel kernel, int blocks, std::size_t bytes) {
  double least = 1e9;
  std::uint32_t number = 0;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto play = [&](int i) {
      Call call{pair.ranks[i], pair.ranks[1 - i], number, static_cast<std::uint32_t>(bytes / 4)};
      for (int k = 0; k < calls; ++k) {
        ++call.number;
        kernel<<<blocks, threads_of_block, 0, pair.streams[i]>>>(call);
      }
      check(cudaGetLastError(), "a launch");
      check(cudaStreamSynchronize(pair.streams[i]), "cudaStreamSynchronize");
    };
    std::thread other(play, 1);
    play(0);
    other.join();
    number += calls;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (round > 0) least = std::min(least, took.count() / calls);
  }
  return least;
}

bool right(const Pair& pair, std::size_t bytes) {
  for (const Rank& rank : pair.ranks) {
    std::vector<float> values(bytes / sizeof(float));
    check(cudaMemcpy(values.data(), rank.output, bytes, cudaMemcpyDefault), "cudaMemcpy");
    if (std::any_of(values.begin(), values.end(), [](float value) { return value != 3.5f; }))
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: one_shot BYTES...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10) / 16 * 16;
    double least = 1e9;
    char best[64] = "";
    for (const Variant& variant : variants)
      for (const int blocks : block_counts) {
        Pair pair(bytes);
        const double seconds = seconds_of_call(pair, variant.kernel, blocks, bytes);
        if (!right(pair, bytes)) {
          std::fprintf(stderr, "one_shot: %zu bytes, %s, %d blocks: wrong\n", bytes, variant.name,
                       blocks);
          return 1;
        }
        if (seconds >= least) continue;
        least = seconds;
        std::snprintf(best, sizeof best, "%s-%d", variant.name, blocks);
      }
    std::printf("%zu %.3f %s\n", bytes, least * 1e6, best);
  }
  return 0;
}
