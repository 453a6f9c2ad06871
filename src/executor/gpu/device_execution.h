// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/driver.h"
#include "executor/execution.h"
#include "executor/gpu/block_table.h"
#include "executor/gpu/program.h"

namespace khoro::gpu {

/// A page by which a rank's host and its kernels reach each other while these run. Thread-safe once
/// made.
class ControlPage {
 public:
  /// Throws `Error`.
  ControlPage(Driver& driver, int device);
  ~ControlPage();
  ControlPage(const ControlPage&) = delete;
  ControlPage& operator=(const ControlPage&) = delete;

  /// Has all kernels of the rank end soon, those that are queued too.
  void stop() noexcept;
  Report report() const noexcept;

  std::uint32_t* stop_in_kernels() const noexcept { return &there_->stop; }
  Report* report_in_kernels() const noexcept { return &there_->report; }

 private:
  struct Words {
    alignas(128) std::uint32_t stop;
    alignas(128) Report report;
  };
  Words* here_ = nullptr;
  Words* there_ = nullptr;
  std::unique_ptr<PinnedMemory> pinned_;
};

/// Memory of a device for partial results, shared by the programs of a communicator: their calls
/// run one after the other on the device. Thread-compatible.
class DeviceScratch {
 public:
  /// `shared`: kernels of all devices that can are to reach it.
  DeviceScratch(Driver& driver, int device, bool shared = false) noexcept
      : driver_(driver), device_(device), shared_(shared) {}
  /// All that is held. Any thread.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  /// So many bytes at least, as kernels see them. What was there before stays until this is
  /// destroyed, for calls that are queued. Throws `Error`.
  std::byte* at_least(std::uint64_t bytes);
  /// Who reaches it.
  DeviceSet devices() const noexcept { return reached_.devices; }
  /// Where that is for streams. Precondition: it was some bytes.
  DeviceAddress address() const noexcept { return memory_.back()->address(); }

 private:
  Driver& driver_;
  int device_;
  bool shared_;
  Reached reached_;                                    // the one in use
  std::vector<std::unique_ptr<DeviceMemory>> memory_;  // the last one is in use
  std::atomic<std::uint64_t> bytes_{0};
};

/// The ends of a rank's channels, as kernels of its device find them. They live as long as the
/// communicator; asking twice gives the same end.
class DeviceEnds {
 public:
  virtual ~DeviceEnds() = default;
  virtual const Layout& layout() const noexcept = 0;
  virtual End* sender(int peer, std::uint8_t index) = 0;
  virtual End* receiver(int peer, std::uint8_t index) = 0;
};

/// What the programs of a rank share.
struct DeviceSeat {
  Driver& driver;
  int device = 0;
  DeviceEnds& ends;
  ControlPage& control;
  DeviceScratch& scratch;
  Partials partials = Partials::dtype;
  /// Ranks on the device whose programs wait for each other's, this one among them.
  int neighbours = 1;
  /// A call of count 0 passes empty messages.
  bool passes_empty = false;
  /// Bytes of the least message that is left in the buffers of who sends it, or put into those of
  /// who receives it, where the other's GPU reaches them.
  std::uint64_t direct_bytes = UINT64_MAX;
};

/// One rank's program on its device, and the calls of it that streams are given. Made once per
/// plan. Thread-compatible.
class DeviceExecution {
 public:
  /// Opens every port of the image. Throws `Error`: invalid_argument as Execution does, and
  /// invalid_usage where the device cannot run the lanes of all neighbours at once.
  DeviceExecution(Image image, const Collective& collective, const DeviceSeat& seat);
  DeviceExecution(const DeviceExecution&) = delete;
  DeviceExecution& operator=(const DeviceExecution&) = delete;

  const Image& image() const noexcept { return image_; }
  /// What a call takes of the device, beside its buffers and partial results.
  struct Footprint {
    std::size_t blocks = 0;
    int threads = 0;                 // of a block
    std::uint32_t shared_bytes = 0;  // of a block
    std::uint64_t program_bytes = 0;
  };
  Footprint footprint() const noexcept {
    return {image_.lanes.size(), threads_of_block, layout_.block_bytes(), layout_.bytes()};
  }
  /// Queues a call; the buffers are the device's until the stream has done it. Calls of a rank are
  /// done in the order in which they are queued, on whatever streams, which is for the caller to
  /// see to. It may block when it is the first that needs so much scratch. Throws `Error`:
  /// invalid_argument for memory that the device does not reach, invalid_usage for a call that no
  /// kernel can run. Calls of unequal blocks, which are copied, are for FusedLaunch.
  void launch(const CallArguments& call, DeviceStream& stream);

 private:
  friend class FusedLaunch;
  /// Unequal blocks, and where they are to be when the call begins.
  struct PlacedBlocks {
    BlockTable table;
    DeviceAddress at = 0;
  };
  /// The call as kernels take it; nothing if there is nothing to do. `blocks` is null where it must
  /// have equal ones.
  std::optional<Call> prepare(const CallArguments& call, PlacedBlocks* blocks = nullptr);
  void write();
  /// Translates what is still as callers see it, and takes away from `devices` those that do not
  /// reach it.
  std::byte* in_kernels(const CallArguments& call, const void* buffer, const char* name,
                        DeviceSet& devices) const;

  const Image image_;
  const Collective collective_;
  DeviceSeat seat_;
  ProgramLayout layout_;
  std::unique_ptr<DeviceMemory> memory_;
  std::byte* there_ = nullptr;
  Program program_;
  const Kernel* kernel_ = nullptr;
};

/// Calls that run beside each other in one launch: one of any program, and others of programs of
/// one lane. Those of one program run one after the other. Used again after clear(). It outlives
/// what it has launched. Thread-compatible.
class FusedLaunch {
 public:
  FusedLaunch(Driver& driver, int device) noexcept : driver_(driver), device_(device) {}

  /// Adds the call that may have several lanes: at most once, and first. Throws as
  /// DeviceExecution::launch().
  void add_wide(DeviceExecution& program, const CallArguments& call);
  void add(DeviceExecution& program, const CallArguments& call);
  /// Queues them all, if there are any. Throws `Error`: invalid_usage where the device cannot run
  /// all blocks at once.
  void launch(DeviceStream& stream);
  void clear() noexcept;

 private:
  struct Part {
    DeviceExecution* program;
    std::vector<Call> calls;
  };
  void note(const DeviceExecution& program) noexcept;

  Driver& driver_;
  int device_;
  Call wide_;                             // without a lane if there is none
  DeviceExecution::PlacedBlocks blocks_;  // of that one
  std::vector<Part> parts_;
  const Kernel* kernel_ = nullptr;
  std::uint32_t block_bytes_ = 0;
  int neighbours_ = 1;
  std::vector<Call> beside_;  // as they lie on the device
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace khoro::gpu
