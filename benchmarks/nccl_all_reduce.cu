// SPDX-License-Identifier: Apache-2.0
// The time of NCCL's allreduce of floats, where NCCL is installed: what Khoro's is compared with.
// Built with nvcc; NCCL is found when it runs.
//
// usage: nccl_all_reduce DEVICE,DEVICE,... BYTES...
//
// A rank for each device, all driven by one thread. For each size a line: the bytes, and the
// microseconds of a call among many that are queued at once. Exits 77, with NCCL's words, where
// NCCL is not there or refuses the devices.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int cannot = 77;
constexpr int calls = 200;
constexpr int rounds = 3;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "nccl_all_reduce: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

/// What is used of NCCL.
struct Nccl {
  using Comm = void*;
  static constexpr int float32 = 7, sum = 0;

  Nccl() : library_(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) refuse(dlerror());
    find(init_all, "ncclCommInitAll");
    find(all_reduce, "ncclAllReduce");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(error_string, "ncclGetErrorString");
  }
  [[noreturn]] static void refuse(const char* why) {
    std::printf("%s\n", why);
    std::exit(cannot);
  }
  void check(int result, const char* what) const {
    if (result == 0) return;
    std::fprintf(stderr, "nccl_all_reduce: %s: %s\n", what, error_string(result));
    std::exit(1);
  }

  int (*init_all)(Comm*, int, const int*);
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*group_start)();
  int (*group_end)();
  const char* (*error_string)(int);

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (!function) refuse(dlerror());
  }
  void* library_;
};

struct Rank {
  int device;
  Nccl::Comm comm;
  cudaStream_t stream;
  void* input;
  void* output;
};

double seconds_of_call(const Nccl& nccl, std::vector<Rank>& ranks, std::size_t bytes) {
  for (Rank& rank : ranks) {
    check(cudaSetDevice(rank.device), "cudaSetDevice");
    check(cudaMalloc(&rank.input, bytes), "cudaMalloc");
    check(cudaMalloc(&rank.output, bytes), "cudaMalloc");
    check(cudaMemset(rank.input, 0, bytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  double least = 1e9;
  for (int round = 0; round <= rounds; ++round) {  // the first one warms up
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < calls; ++k) {
      nccl.check(nccl.group_start(), "ncclGroupStart");
      for (const Rank& rank : ranks)
        nccl.check(nccl.all_reduce(rank.input, rank.output, bytes / 4, Nccl::float32, Nccl::sum,
                                   rank.comm, rank.stream),
                   "ncclAllReduce");
      nccl.check(nccl.group_end(), "ncclGroupEnd");
    }
    for (const Rank& rank : ranks) check(cudaStreamSynchronize(rank.stream), "a stream");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (round > 0) least = std::min(least, took.count() / calls);
  }
  for (const Rank& rank : ranks)
    for (void* buffer : {rank.input, rank.output}) check(cudaFree(buffer), "cudaFree");
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: nccl_all_reduce DEVICE,DEVICE,... BYTES...\n");
    return 2;
  }
  std::vector<int> devices;
  for (char* at = argv[1]; *at;) {
    devices.push_back(static_cast<int>(std::strtol(at, &at, 10)));
    if (*at) ++at;
  }
  const Nccl nccl;
  std::vector<Nccl::Comm> comms(devices.size());
  const int made = nccl.init_all(comms.data(), static_cast<int>(devices.size()), devices.data());
  if (made != 0) Nccl::refuse(nccl.error_string(made));
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Rank rank{devices[i], comms[i], nullptr, nullptr, nullptr};
    check(cudaSetDevice(rank.device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    ranks.push_back(rank);
  }
  for (int i = 2; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10) / 4 * 4;
    std::printf("%zu %.3f\n", bytes, 1e6 * seconds_of_call(nccl, ranks, bytes));
  }
  return 0;
}
