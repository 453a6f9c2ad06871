// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace khoro {

/// Where memory lies for callers: what they pass to calls, and what copies and fills take. Host
/// code may not touch it unless it is host memory.
using DeviceAddress = std::uint64_t;

struct DeviceFacts {
  std::string name;
  std::string bus_id;  // as in a Topology: "0000:1b:00.0"
  std::uint64_t memory_bytes = 0;
  int multiprocessors = 1;
  /// 90 for compute capability 9.0; 0: not a GPU that has one.
  int capability = 0;
};

/// What an address is.
struct AddressFacts {
  enum class Kind : std::uint8_t { unknown, pinned, device, managed };
  Kind kind = Kind::unknown;  // unknown: host memory that this driver knows nothing of, or nothing
  int device = -1;
  /// The allocation that it lies in; 0 where kind is unknown.
  DeviceAddress begin = 0;
  std::uint64_t bytes = 0;
};

/// Of some devices, each a bit; those from 64 on have none.
using DeviceSet = std::uint64_t;
constexpr DeviceSet only(int device) noexcept {
  return device >= 0 && device < 64 ? DeviceSet{1} << device : 0;
}

/// Memory as kernels of a device reach it.
struct Reached {
  DeviceAddress in_kernels = 0;  // what they have to use for the address
  AddressFacts facts;
  /// Devices that have the memory, and others known to reach it by what `in_kernels` says.
  DeviceSet devices = 0;
};

/// What another process needs to open memory of this one's.
struct MemoryHandle {
  Descriptor descriptor;  // none: the words below name it
  std::array<std::byte, 64> words = {};
  std::uint64_t bytes = 0;
};

/// Memory of a device, of this process or another one's. Given back when destroyed, which the
/// caller sees to that nothing uses it then. Thread-compatible.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual DeviceAddress address() const noexcept = 0;
  virtual std::uint64_t bytes() const noexcept = 0;
  /// What it takes of the device: whole pages.
  virtual std::uint64_t held() const noexcept = 0;
  /// Has kernels of another device reach it. Throws `Error`: invalid_usage unless
  /// Driver::reaches().
  virtual void allow(int device) = 0;
  /// The same of all devices that Driver::reaches() names, as far as the driver does that and none
  /// has to be brought into use for it. Driver::reach() says what came of it.
  virtual void allow_all() noexcept = 0;
  /// Throws `Error`.
  virtual MemoryHandle handle() const = 0;
};

/// Host memory that kernels of all devices reach while this lives. The memory is the caller's.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  virtual DeviceAddress address() const noexcept = 0;
};

class VirtualBlock;

/// Kernels as a driver takes them: machine code for GPUs, and functions for virtual ones.
struct KernelImage {
  /// What a thread of a block does: `arguments` lie where they stay until the kernel has ended.
  using Function = void (*)(const void* arguments, VirtualBlock& block);
  struct Entry {
    const char* name;
    Function function;
  };
  std::span<const std::byte> code;  // empty: built without a compiler for GPUs
  std::span<const Entry> functions;
};

/// A kernel of one device. Lives as long as its driver.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Blocks of it that run at once on the idle device, which is what blocks that wait for each
  /// other need. Throws `Error`.
  virtual int resident_blocks(int threads, std::uint32_t shared_bytes) const = 0;
};

struct Launch {
  const Kernel* kernel = nullptr;
  int blocks = 1;
  int threads = 1;  // of a block
  std::uint32_t shared_bytes = 0;
  std::span<const std::byte> arguments;  // one struct, passed by value
};

/// A point in the work of a stream. Thread-compatible.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  /// Whether what was on the stream before it has ended; true if it was never recorded. Throws
  /// `Error` when the device has failed.
  virtual bool complete() const = 0;
  /// Blocks until then.
  virtual void synchronize() const = 0;
};

/// Work of one device that is done in order, while the host goes on. All functions but the last two
/// only queue; they throw `Error` where that fails. A stream that was made here does all that was
/// queued before it is destroyed. Thread-safe.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  /// The system's own name of it: a CUstream. Null for the default stream.
  virtual void* native() const noexcept = 0;
  /// Between memory of any kinds; host memory that is not pinned must stay until it is done, for
  /// which the caller may be blocked.
  virtual void copy(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) = 0;
  virtual void fill(DeviceAddress to, std::byte value, std::uint64_t bytes) = 0;
  virtual void launch(const Launch& launch) = 0;
  virtual void record(DeviceEvent& event) = 0;
  virtual void wait(const DeviceEvent& event) = 0;
  /// Calls once what was queued before is done, on a thread that must not use the driver. What it
  /// throws is the failure of the stream: unhandled_device_error from then on.
  virtual void call(std::function<void()> function) = 0;
  /// Whether all that was queued is done. Throws `Error` when the device has failed.
  virtual bool idle() const = 0;
  /// Blocks until it is.
  virtual void synchronize() const = 0;
};

/// The only way to GPUs: CUDA's, found when the process runs, or virtual ones made of host threads
/// and memory. Thread-safe. What fails throws `Error`: out_of_memory, invalid_argument,
/// invalid_usage or unhandled_device_error, with the driver's words. Whatever a driver has made
/// ends before it does.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const noexcept = 0;
  virtual int devices() const noexcept = 0;
  virtual DeviceFacts facts(int device) const = 0;
  /// Whether kernels of `device` can reach memory of `peer`, by links between the two.
  virtual bool reaches(int device, int peer) const = 0;
  virtual AddressFacts facts(DeviceAddress address) const = 0;
  /// Throws `Error` if kernels of `device` do not reach the address.
  virtual Reached reach(int device, DeviceAddress address) const = 0;
  DeviceAddress in_kernels(int device, DeviceAddress address) const {
    return reach(device, address).in_kernels;
  }

  /// Zeroed. Kernels of `device` reach it.
  virtual std::unique_ptr<DeviceMemory> allocate(int device, std::uint64_t bytes) = 0;
  /// Memory of another process, for kernels of `device`. The handle stays the caller's.
  virtual std::unique_ptr<DeviceMemory> open(int device, const MemoryHandle& handle) = 0;
  /// Whole pages, which stay mapped while the result lives.
  virtual std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory) = 0;

  virtual std::unique_ptr<DeviceStream> make_stream(int device) = 0;
  /// A stream that somebody else has made, as native() of it; it stays theirs. Throws
  /// invalid_argument if it is none of that device.
  virtual std::unique_ptr<DeviceStream> borrow_stream(int device, void* native) = 0;
  virtual std::unique_ptr<DeviceEvent> make_event(int device) = 0;
  /// The kernel of that name. The image stays as it is while the driver lives.
  virtual const Kernel& kernel(int device, const KernelImage& image, std::string_view name) = 0;
};

}  // namespace khoro
