// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a block of a kernel does: one lane of a strand of a call, from its first step to its last,
// and others after it.

#include <new>

#include "executor/gpu/engine.h"
#include "executor/interpreter.h"

namespace khoro::gpu {

/// Who waits in a kernel looks so often for what it waits for until it looks whether it is to end.
inline constexpr unsigned looks_between = 64;

/// What a block does of a call.
struct Work {
  std::uint32_t lane = 0;
  std::uint32_t strand = 0;
};

/// A block's own memory: this, and behind it rooms for the widest step and for staging.
struct BlockMemory {
  KHORO_HD BlockMemory(const Call& call, const Work& work, std::byte* staging) noexcept
      : engine(call, work.strand, staging) {
    const LaneRange range = call.program.lanes[work.lane];
    lane.first = lane.stage = range.first;
    lane.last = range.last;
    lane.tile = work.strand;
    lane.outlook = call.tiles == 0 ? Outlook::ends : Outlook::waits;
  }

  Engine engine;
  LaneState lane;
  bool ends = false;

  /// Bytes that a block needs for steps of so many sources and sinks.
  static constexpr std::uint32_t bytes(std::uint32_t sources, std::uint32_t sinks) noexcept {
    return static_cast<std::uint32_t>(rooms_offset() + to_vectors(sources * sizeof(Operand)) +
                                      to_vectors(sources * sizeof(Source)) +
                                      to_vectors(sinks * sizeof(Sink)) + Staging::bytes);
  }
  KHORO_HD static constexpr std::size_t to_vectors(std::size_t bytes) noexcept {
    return (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
  }
  KHORO_HD static constexpr std::size_t rooms_offset() noexcept;
};

KHORO_HD constexpr std::size_t BlockMemory::rooms_offset() noexcept {
  return to_vectors(sizeof(BlockMemory));
}

/// By the leader, in `memory` of BlockMemory::bytes() at a multiple of 16.
KHORO_HD inline void lay_out(std::byte* memory, const Call& call, const Work& work) noexcept {
  const Program& program = call.program;
  std::byte* room = memory + BlockMemory::rooms_offset();
  auto* const operands = reinterpret_cast<Operand*>(room);
  room += BlockMemory::to_vectors(program.sources * sizeof(Operand));
  auto* const sources = reinterpret_cast<Source*>(room);
  room += BlockMemory::to_vectors(program.sources * sizeof(Source));
  auto* const sinks = reinterpret_cast<Sink*>(room);
  room += BlockMemory::to_vectors(program.sinks * sizeof(Sink));
  for (std::uint32_t k = 0; k < program.sources; ++k) {
    new (&operands[k]) Operand;
    new (&sources[k]) Source;
  }
  for (std::uint32_t k = 0; k < program.sinks; ++k) new (&sinks[k]) Sink;
  auto* const block = new (memory) BlockMemory(call, work, room);
  block->lane.operands = operands;
  block->lane.sources = sources;
  block->lane.sinks = sinks;
}

/// Runs a lane to its end, or until it fails or the host wants it to end: false. All members call
/// it.
template <class Team>
KHORO_HD bool run_lane(const Team& team, const Call& call, const Work& work,
                       std::byte* memory) noexcept {
  if (team.rank() == 0) lay_out(memory, call, work);
  team.sync();
  auto& block = *std::launder(reinterpret_cast<BlockMemory*>(memory));
  Progress progress = Progress::moved;
  for (unsigned looks = 0; progress == Progress::moved || progress == Progress::waiting; ++looks) {
    // Before all else, too: ends are not to be used as a call has left them that did not end.
    if (looks % looks_between == 0) {
      if (team.rank() == 0) block.ends = block.engine.stopped();
      team.sync();
      if (block.ends) break;
    }
    progress = advance(block.engine, team, block.lane);
    if (progress == Progress::done && block.engine.lends()) {
      team.sync();  // all have seen it
      if (team.rank() == 0) block.engine.take_back();
      progress = Progress::waiting;
    }
    if (progress == Progress::waiting) team.pause();
  }
  if (progress == Progress::done) return true;
  if (team.rank() != 0) return false;
  // Apart, so that what ends because of a failure does not hide it.
  if (progress != Progress::failed) {
    publish_alone(call.report->stopped, 1u);
    return false;
  }
  publish_alone(call.report->digest, call.digest);
  const Stage& stage = block.engine.stage(block.lane.stage);
  if (stage.has_channel())
    publish_alone(call.report->peer, 1 + static_cast<std::uint32_t>(stage.peer()));
  // Pairs with ControlPage::report().
  khoro::publish(call.report->failure, 1 + static_cast<std::uint32_t>(block.engine.status()));
  return false;
}

/// Waits until `all` have arrived, this block among them. All members call it. False: the kernel is
/// to end.
template <class Team>
KHORO_HD bool meet(const Team& team, const Call& call, std::uint32_t& arrivals, std::uint32_t all,
                   std::byte* memory) noexcept {
  team.sync();  // all members are through with the call, and with its memory
  if (team.rank() == 0) {
    arrive(arrivals);
    bool here = false, ends = false;
    for (unsigned looks = 0; !(here = khoro::observe(arrivals) >= all) && !ends; ++looks) {
      if (looks % looks_between == 0) ends = is_stopped(call);
      team.pause();
    }
    if (!here) publish_alone(call.report->stopped, 1u);
    new (memory) bool(here);
  }
  team.sync();
  const bool all_are_here = *std::launder(reinterpret_cast<const bool*>(memory));
  team.sync();  // before it is laid out anew
  return all_are_here;
}

/// The first call from `call` on that the block runs beside others; null: there is none.
KHORO_HD inline const Call* beside(const Calls& calls, const Call* call,
                                   std::uint32_t block) noexcept {
  const Call* const end = calls.beside + calls.beside_count;
  while (call != end && block - call->block >= call->blocks) ++call;
  return call == end ? nullptr : call;
}

/// What a block of a launch does. All members call it.
template <class Team>
KHORO_HD void run_block(const Team& team, const Calls& calls, std::uint32_t block,
                        std::byte* memory) noexcept {
  const bool in_turn = block < calls.blocks;
  const Call* call = in_turn ? &calls.first : beside(calls, calls.beside, block);
  for (std::uint32_t done = 0; call != nullptr;) {
    const std::uint32_t lanes = call->program.lane_count;
    Work work;
    std::uint32_t at_once = 0;  // strands
    if (!in_turn) {
      work = {0, block - call->block};
      at_once = call->blocks;
    } else if (lanes > 0) {
      work = {block % lanes, block / lanes};
      at_once = calls.blocks / lanes;
    }
    // All ranks begin strands in their order, so that each is come to by all, however many blocks
    // they have for it. The blocks that are left over do nothing.
    const std::uint32_t end = work.strand < at_once ? call->strands() : 0;
    for (; work.strand < end; work.strand += at_once) {
      if (!run_lane(team, *call, work, memory)) return;
      team.sync();  // before the memory is laid out anew
    }
    if (!in_turn) {
      call = beside(calls, call + 1, block);
      continue;
    }
    if (done == calls.later_count) return;
    // The next one uses the same channels, and maybe other blocks for them.
    const Call* const next = &calls.later[done++];
    if (!meet(team, *call, *calls.arrivals, done * calls.blocks, memory)) return;
    if (block == 0 && team.rank() == 0) publish_alone(*calls.passed, done);
    call = next;
  }
}

}  // namespace khoro::gpu
