// SPDX-License-Identifier: Apache-2.0
#pragma once

// A CUDA driver for machines without GPUs: memory of devices is host memory, streams are threads.
// It counts what is open, and fails one call when it is told to; calls that end something never
// fail. What kind of machine it is stands in the environment, read when it is asked for:
//   FAKE_CUDA_VERSION  as cuDriverGetVersion() gives it; the toolkit's if it is not set
//   FAKE_CUDA_DEVICES  how many; 2
//   FAKE_CUDA_REACH    0: devices do not reach each other
//   FAKE_CUDA_MAPPED   0: memory cannot be mapped and shared by descriptors

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

struct CUctx_st {
  int device;
};

/// How far streams are to which an event was given.
struct EventMark {
  std::mutex mutex;
  std::condition_variable progress;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
};
struct CUevent_st {
  // With what streams have been told to do: an event may end before that is done.
  std::shared_ptr<EventMark> mark = std::make_shared<EventMark>();
};

struct CUstream_st {
  explicit CUstream_st(CUcontext of);
  ~CUstream_st();
  void push(std::function<void()> task);
  bool idle();
  void synchronize();

  CUcontext context;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable progress_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

namespace fake_cuda {

inline constexpr std::size_t memory_bytes = 64 << 20;
inline constexpr std::size_t page_bytes = 2 << 20;

/// Memory that somebody has asked for, whether or not it is mapped.
struct Physical {
  int descriptor;
  std::size_t bytes;
  int device;
  bool counts;  // against the device's memory: not what was made by others
};

/// What is at some addresses.
struct Region {
  std::size_t bytes;
  CUmemorytype type;
  int device;
  std::set<int> users;
  std::uint64_t physical = 0;
};

struct State {
  std::mutex mutex;
  CUctx_st contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
  std::map<int, int> retained;  // by device
  std::map<std::uint64_t, Physical> physical;
  std::uint64_t next_physical = 1;
  std::map<CUdeviceptr, std::size_t> reserved;
  std::map<CUdeviceptr, Region> regions;
  std::set<std::pair<int, int>> peers;  // user, owner
  std::map<int, std::size_t> taken;     // bytes, by device
  std::set<CUstream> streams;
  std::map<CUcontext, std::unique_ptr<CUstream_st>> defaults;
  int events = 0;
  int modules = 0;
};

State& state();
int number_of(const char* variable, int otherwise);

/// Every call that makes something begins so; not success if it is its turn to fail.
CUresult enter();
/// The same where a context must be current.
CUresult enter(CUcontext* context);
CUcontext current();

}  // namespace fake_cuda
