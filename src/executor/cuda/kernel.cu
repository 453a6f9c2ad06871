// SPDX-License-Identifier: Apache-2.0

// The kernel for real GPUs: a block is a lane of a strand, and its threads are the team.

#include <cstddef>
#include <cstdint>

#include "executor/gpu/run_lane.h"

namespace {

/// The threads of one block.
struct Block {
  __device__ unsigned rank() const { return threadIdx.x; }
  __device__ unsigned size() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }
  __device__ void pause() const {}
};

}  // namespace

// One block for each multiprocessor: where that is not said nvcc 13.0 makes room for two on sm_100,
// and spills.
extern "C" __global__ void __launch_bounds__(khoro::gpu::threads_of_block, 1)
    khoro_run_lanes(const __grid_constant__ khoro::gpu::Calls calls) {
  extern __shared__ __align__(16) std::byte memory[];
  khoro::gpu::run_block(Block{}, calls, blockIdx.x, memory);
}
