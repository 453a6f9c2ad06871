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
#include "executor/gpu/device_arena.h"
#include "executor/gpu/pinned_pages.h"
#include "executor/gpu/program.h"

namespace khoro::gpu {

/// A page by which a rank's host and its kernels reach each other while these run. Thread-safe once
/// made.
class ControlPage {
 public:
  /// Throws `Error`.
  ControlPage(Driver& driver, int device);

  /// Has all kernels of the rank end soon, those that are queued too.
  void stop() noexcept;
  Report report() const noexcept;
  /// Of host memory.
  std::uint64_t bytes() const noexcept { return page_.here().size(); }

  std::uint32_t* stop_in_kernels() const noexcept { return &there_->stop; }
  Report* report_in_kernels() const noexcept { return &there_->report; }

 private:
  struct Words {
    alignas(128) std::uint32_t stop;
    alignas(128) Report report;
  };
  PinnedPages page_;
  Words* here_;
  Words* there_;
};

/// Memory of a device for partial results, shared by the programs of a communicator: their calls
/// run one after the other on the device. Thread-compatible.
class DeviceScratch {
 public:
  /// `shared`: kernels of all devices that can are to reach it.
  DeviceScratch(Driver& driver, int device, bool shared = false) noexcept
      : driver_(driver), device_(device), shared_(shared) {}
  /// What it takes of the device. Any thread.
  std::uint64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
  /// So many bytes at least, as kernels see them. What was there before stays until this is
  /// destroyed, for calls that are queued. Throws `Error`.
  std::byte* at_least(std::uint64_t bytes);
  /// Who reaches it.
  DeviceSet devices() const noexcept { return reached_.devices; }

 private:
  Driver& driver_;
  int device_;
  bool shared_;
  Reached reached_;                                    // the one in use
  std::vector<std::unique_ptr<DeviceMemory>> memory_;  // the last one is in use
  std::atomic<std::uint64_t> held_{0};
};

/// The ends of a rank's channels, as kernels of its device find them. They live as long as the
/// communicator; asking twice gives the same end.
class DeviceEnds {
 public:
  virtual ~DeviceEnds() = default;
  virtual const Layout& layout() const noexcept = 0;
  /// Strands after the first have so many channels of plans between two ranks, and that of
  /// messages, of so many slots at least.
  static constexpr int channels_of_strand = 2, slots_of_strand = 2;
  /// How many strands of a program have channels; the same on all ranks.
  virtual std::uint32_t strands() const noexcept = 0;
  virtual End* sender(int peer, std::uint8_t index, std::uint32_t strand) = 0;
  virtual End* receiver(int peer, std::uint8_t index, std::uint32_t strand) = 0;
};

/// What the programs of a rank share.
struct DeviceSeat {
  Driver& driver;
  int device = 0;
  DeviceArena& arena;
  DeviceEnds& ends;
  ControlPage& control;
  DeviceScratch& scratch;
  Partials partials = Partials::dtype;
  /// A call of count 0 passes empty messages.
  bool passes_empty = false;
  /// Bytes of the least message that is left in the buffers of who sends it, or put into those of
  /// who receives it, where the other's GPU reaches them.
  std::uint64_t direct_bytes = UINT64_MAX;
  /// No rank uses other channels of a plan than strands have, nor needs more slots.
  bool in_strands = false;
};

/// One rank's program on its device, for FusedLaunch. Made once per plan. Thread-compatible.
class DeviceExecution {
 public:
  /// Throws `Error`, invalid_argument as Execution does.
  DeviceExecution(Image image, const Collective& collective, const DeviceSeat& seat);
  DeviceExecution(const DeviceExecution&) = delete;
  DeviceExecution& operator=(const DeviceExecution&) = delete;

  const Image& image() const noexcept { return image_; }
  /// What a call takes of the device, beside its buffers and partial results.
  struct Footprint {
    std::size_t blocks = 0;          // of a strand
    std::uint32_t strands = 1;       // at most
    int threads = 0;                 // of a block
    std::uint32_t shared_bytes = 0;  // of a block
    std::uint64_t program_bytes = 0;
  };
  Footprint footprint() const noexcept {
    return {image_.lanes.size(), program_.strand_count, threads_of_block, layout_.block_bytes(),
            layout_.bytes()};
  }

 private:
  friend class FusedLaunch;
  /// The call as kernels take it; nothing if there is nothing to do. Unequal blocks are put into
  /// `table`, which is null where it must have equal ones.
  std::optional<Call> prepare(const CallArguments& call, BlockTable* table);
  /// Opens the ports of so many strands at least.
  void open(std::uint32_t strands);
  /// Translates what is still as callers see it, and takes away from `devices` those that do not
  /// reach it.
  std::byte* in_kernels(const CallArguments& call, const void* buffer, const char* name,
                        DeviceSet& devices) const;

  const Image image_;
  const Collective collective_;
  DeviceSeat seat_;
  ProgramLayout layout_;
  std::uint32_t opened_ = 0;  // strands
  DeviceArena::Piece memory_;
  Program program_;
  const Kernel* kernel_ = nullptr;
};

/// Calls of a rank that are one launch. Those in turn are of any programs and run one after the
/// other; beside them run calls of programs of one lane, of which those of one program follow each
/// other. Used again after clear(), once what it has launched has ended. Thread-compatible.
class FusedLaunch {
 public:
  /// What the calls need beside scratch is taken from the arena.
  explicit FusedLaunch(DeviceArena& arena) noexcept : arena_(arena) {}

  /// They throw `Error`: invalid_argument for memory that the device does not reach, invalid_usage
  /// for a call that no kernel can run. They may block until a program has more scratch.
  /// The first says how many calls in turn there are then.
  std::uint32_t add_in_turn(DeviceExecution& program, const CallArguments& call);
  void add_beside(DeviceExecution& program, const CallArguments& call);
  /// Gets that; it may block. Throws `Error`.
  void allocate();
  /// What it asks of the device, of no blocks if there is nothing to do; and the fewest blocks that
  /// can do it, when several strands follow each other in a block.
  Launch shape() const noexcept;
  int least_blocks() const noexcept;
  /// Queues them all, in no more blocks than so many, or in the fewest that can do it. The buffers
  /// are the device's until the stream has done it. Launches of a rank are done in the order in
  /// which they are queued, on whatever streams, and the device must be able to run all their
  /// blocks at once: both is for the caller to see to. Throws `Error`.
  void launch(DeviceStream& stream, int blocks);
  void launch(DeviceStream& stream) { launch(stream, shape().blocks); }
  void clear() noexcept;

  /// How many calls in turn are done, while others are not.
  std::uint32_t passed() const noexcept;

 private:
  struct InTurn {
    Call call;
    BlockTable table;
  };
  struct Part {
    DeviceExecution* program;
    std::vector<Call> calls;
    std::uint32_t strands = 0;  // the most of any
  };
  /// Blocks that all calls in turn are run by, and those that the calls of each program beside are.
  struct Shares {
    std::uint32_t in_turn = 0;
    std::uint32_t beside = 0;  // for each, if it has as many strands
  };
  Shares least() const noexcept;
  Shares most() const noexcept;
  int blocks_of(const Shares& shares) const noexcept;
  /// That come to no more blocks, unless these are less than the least.
  Shares shares_of(int blocks) const noexcept;
  void note(const DeviceExecution& program) noexcept;
  /// Of what the kernel finds in memory of the device; 0 if all of it is among the arguments.
  std::uint64_t rest_bytes() const noexcept;
  /// Writes that to the device.
  void copy_rest(Calls& calls, const Shares& shares, DeviceStream& stream);

  std::vector<InTurn> in_turn_;
  std::vector<Part> beside_;
  const Kernel* kernel_ = nullptr;
  std::uint32_t block_bytes_ = 0;
  DeviceArena& arena_;
  DeviceArena::Piece rest_;
  DeviceArena::Pinned here_;  // what that is written from, behind the word of passed()
};

}  // namespace khoro::gpu
