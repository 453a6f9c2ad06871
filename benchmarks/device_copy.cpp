// SPDX-License-Identifier: Apache-2.0
// How fast a GPU copies its own memory: what calls between ranks on one GPU are compared with.
//
// usage: device_copy cuda|virtual BYTES...
//
// For each size a line: the bytes, and the microseconds of a copy among many that are queued at
// once.
#include <fmt/format.h>
#include <khoro/khoro.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ranks.h"

using khoro::benchmark::check;

namespace {

constexpr int copies = 20;
constexpr int rounds = 5;

/// The least of some rounds.
double seconds_of_copy(khoroMemory_t memory, std::size_t bytes) {
  void *from = nullptr, *to = nullptr;
  khoroStream_t stream = nullptr;
  check(khoroDeviceAlloc(&from, bytes, memory, 0), "khoroDeviceAlloc");
  check(khoroDeviceAlloc(&to, bytes, memory, 0), "khoroDeviceAlloc");
  check(khoroDeviceStreamCreate(&stream, memory, 0), "khoroDeviceStreamCreate");
  double least = 1e9;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < copies; ++k)
      check(khoroDeviceCopy(to, from, bytes, stream), "khoroDeviceCopy");
    check(khoroStreamSynchronize(stream), "khoroStreamSynchronize");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (round > 0) least = std::min(least, took.count() / copies);  // the first one warms up
  }
  check(khoroStreamDestroy(stream), "khoroStreamDestroy");
  for (void* buffer : {from, to}) check(khoroDeviceFree(buffer), "khoroDeviceFree");
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc > 2 ? argv[1] : "";
  if (kind != "cuda" && kind != "virtual") {
    fmt::print(stderr, "usage: device_copy cuda|virtual BYTES...\n");
    return 2;
  }
  try {
    for (int i = 2; i < argc; ++i) {
      const std::size_t bytes = std::strtoull(argv[i], nullptr, 10);
      fmt::print(
          "{} {:.3f}\n", bytes,
          1e6 * seconds_of_copy(kind == "cuda" ? khoroMemoryCuda : khoroMemoryVirtual, bytes));
    }
  } catch (const khoro::benchmark::Failure& failure) {
    fmt::print(stderr, "device_copy: {}\n", failure.what());
    return 1;
  }
  return 0;
}
