// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <cstddef>
#include <memory>
#include <span>

#include "support/fleet.h"

namespace khoro::test {

/// Memory as calls of a communicator want it: that of its GPU if it has one, with what a test has
/// in memory of the host.
class CaseMemory {
 public:
  explicit CaseMemory(khoroComm_t comm) {
    succeed(khoroCommDevice(comm, &kind_, &device_), "khoroCommDevice");
    if (kind_ == khoroMemoryHost) return;
    succeed(khoroDeviceStreamCreate(&stream_, kind_, device_), "khoroDeviceStreamCreate");
  }
  ~CaseMemory() {
    (void)khoroDeviceFree(there_);
    if (stream_) (void)khoroStreamDestroy(stream_);
  }
  CaseMemory(const CaseMemory&) = delete;
  CaseMemory& operator=(const CaseMemory&) = delete;

  /// For calls; null on the host.
  khoroStream_t stream() const { return stream_; }

  /// Brings all of a test's memory there; at() then says where a place in it is for calls.
  void bring(std::span<std::byte> here) {
    here_ = here;
    if (!stream_) return;
    if (here.size() > room_) {
      (void)khoroDeviceFree(there_);
      there_ = nullptr;
      room_ = 2 * here.size();
      succeed(khoroDeviceAlloc(&there_, room_, kind_, device_), "khoroDeviceAlloc");
    }
    copy(there_, here.data());
  }
  template <class T>
  T* at(T* place) const {
    if (!stream_) return place;
    return reinterpret_cast<T*>(static_cast<std::byte*>(there_) +
                                (reinterpret_cast<const std::byte*>(place) - here_.data()));
  }
  void bring_back() {
    if (stream_) copy(here_.data(), there_);
  }

 private:
  void copy(void* to, const void* from) {
    succeed(khoroDeviceCopy(to, from, here_.size(), stream_), "khoroDeviceCopy");
    succeed(khoroStreamSynchronize(stream_), "khoroStreamSynchronize");
  }

  khoroMemory_t kind_ = khoroMemoryHost;
  int device_ = -1;
  khoroStream_t stream_ = nullptr;
  std::span<std::byte> here_;
  void* there_ = nullptr;
  std::size_t room_ = 0;
};

}  // namespace khoro::test
