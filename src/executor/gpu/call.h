// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel is told: a rank's program, and a call of it.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "base/status.h"
#include "executor/gpu/channel.h"
#include "executor/lane_state.h"
#include "plan/cuts.h"
#include "plan/step.h"

namespace khoro::gpu {

/// Ordered by one lane, awaited by one other: each writes one of the counts.
struct Token {
  std::uint32_t given = 0;
  std::uint32_t taken = 0;
};

struct LaneRange {
  std::uint32_t first = 0;  // of the stages
  std::uint32_t last = 0;
};

/// What calls of a program leave to the next one, and blocks that run the program side by side have
/// each to themselves.
struct Strand {
  End* const* ends = nullptr;  // by port; those of the communicator, shared by its programs
  Token* tokens = nullptr;
  Held* held = nullptr;
  OfferedWindow* windows = nullptr;  // End::most_windows for each port; null: it offers none
};

/// One rank's program, in memory of its device. Tiles have nothing to do with each other, so
/// several strands of a program do one call: strand n the tiles n, n + strand_count, ..., over
/// channels of its own.
struct Program {
  const Stage* stages = nullptr;
  const std::uint32_t* port_of_stage = nullptr;
  const LaneRange* lanes = nullptr;
  const Strand* strands = nullptr;
  std::uint32_t strand_count = 1;  // the same on all ranks
  std::uint32_t lane_count = 0;
  std::uint32_t ranks = 1;
  std::int32_t chunks = 1;
  // Of the widest step.
  std::uint32_t sources = 0;
  std::uint32_t sinks = 0;
};

/// Where a kernel says how it went, in memory that the host reads.
struct Report {
  std::uint32_t failure = 0;  // 1 more than the Status of a lane that failed; 0: none has
  std::uint32_t stopped = 0;  // not 0: a lane ended because the host, or a failure, wanted it
  // Of a lane that failed.
  std::uint32_t digest = 0;  // of the call
  std::uint32_t peer = 0;    // 1 more than whose message it was; 0: nobody's
};

/// Beside Stage's own, on stages as kernels have them: no other lane of the rank writes the span,
/// so that the lane which lends it sees by itself who may not write there; and the same where
/// output lies upon input.
inline constexpr std::uint8_t stage_lends = 64;
inline constexpr std::uint8_t stage_lends_in_place = 128;

/// What of a call's memory kernels of other GPUs may read and write in place of slots.
struct Direct {
  std::uint64_t reached_by = 0;  // GPUs that reach all of it, as bits
  std::uint64_t least = 0;       // bytes of a message
  std::uint8_t flag = stage_lends;
};

/// A call of a program.
struct Call {
  alignas(8) std::byte factor[8] = {};  // an element, of Reduction::premul
  Program program;
  Cuts cuts;
  std::uint64_t tiles = 0;
  // Where a rank knows its own blocks alone, else null: see LocalBlocks.
  const std::uint64_t* tiles_of_stage = nullptr;
  const std::uint32_t* salts = nullptr;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  std::uint64_t scratch_stride = 0;
  std::uint64_t scratch_of_strand = 0;  // bytes
  std::uint64_t room = 0;               // elements that fit a chunk of scratch
  std::uint32_t digest = 0;
  std::uint8_t shifts[2] = {0, 0};  // log2 of an element's bytes, by form
  Form carry_form = Form::dtype;
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  Partials partials = Partials::dtype;
  Direct direct;
  /// Not 0: the host wants the kernel to end.
  std::uint32_t* stop = nullptr;
  Report* report = nullptr;
  // Beside others: the first block that runs it, and how many do.
  std::uint32_t block = 0;
  std::uint32_t blocks = 1;

  /// Those that have something to do.
  KHORO_HD std::uint32_t strands() const noexcept {
    return tiles < program.strand_count ? static_cast<std::uint32_t>(tiles) : program.strand_count;
  }
};

/// The calls of a launch: some that run one after the other, and others beside them. All but the
/// first lie in memory of the device.
struct Calls {
  Call first;
  const Call* later = nullptr;
  std::uint32_t later_count = 0;
  /// The first of the launch, which run those: at least as many as any of them has lanes. Where
  /// they are fewer than its strands need, they run one strand after the other.
  std::uint32_t blocks = 0;
  /// How often a block has been through with one of them. 0 when the launch begins.
  std::uint32_t* arrivals = nullptr;
  /// How many of them all blocks are through with, for the host. 0 when the launch begins.
  std::uint32_t* passed = nullptr;
  /// What the blocks beyond do: calls of programs of one lane, each by its blocks. Those of the
  /// same blocks follow each other here, and run in that order.
  const Call* beside = nullptr;
  std::uint32_t beside_count = 0;
};
static_assert(std::is_trivially_copyable_v<Calls> && sizeof(Calls) <= 4096);

/// The kernel, which is given Calls.
inline constexpr const char* kernel_name = "khoro_run_lanes";
inline constexpr int threads_of_block = 512;

}  // namespace khoro::gpu
