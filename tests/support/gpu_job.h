// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <barrier>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "base/aligned.h"
#include "executor/gpu/program.h"
#include "executor/gpu/run_lane.h"
#include "support/job.h"

namespace khoro::test {

/// A block of one thread, which steps many.
struct LoneThread {
  static constexpr unsigned rank() { return 0; }
  static constexpr unsigned size() { return 1; }
  static constexpr void sync() {}
  static void pause() {}
};

/// One of several threads of a block.
class BlockThread {
 public:
  BlockThread(std::barrier<>& meeting, unsigned rank, unsigned size)
      : meeting_(meeting), rank_(rank), size_(size) {}
  unsigned rank() const { return rank_; }
  unsigned size() const { return size_; }
  void sync() const { meeting_.arrive_and_wait(); }
  static void pause() { std::this_thread::yield(); }

 private:
  std::barrier<>& meeting_;
  unsigned rank_;
  unsigned size_;
};

inline AlignedBytes zeroed(std::uint64_t bytes) {
  AlignedBytes memory = allocate_aligned(bytes);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

/// Both ends of a channel, and its memory.
struct GpuChannel {
  explicit GpuChannel(const gpu::Layout& layout)
      : of_receiver(zeroed(layout.receiver_bytes())),
        of_sender(zeroed(layout.sender_bytes())),
        sender(gpu::end_at(layout, of_receiver.get(), of_sender.get())),
        receiver(sender) {}

  AlignedBytes of_receiver, of_sender;
  gpu::End sender, receiver;
};

/// All ranks of a plan as kernels run them, over memory of this process.
class GpuJob {
 public:
  /// The plan outlives it.
  GpuJob(const Plan& plan, const gpu::Layout& layout, Partials partials = Partials::dtype,
         std::uint32_t strands = 1)
      : GpuJob(plan, layout, {}, partials, strands) {}
  /// Whose kernels take each other's addresses, as `direct` says of all calls but for its flag.
  GpuJob(const Plan& plan, const gpu::Layout& layout, const gpu::Direct& direct,
         Partials partials = Partials::dtype, std::uint32_t strands = 1)
      : plan_(plan), layout_(layout), partials_(partials), direct_(direct), data_(plan, partials) {
    for (int rank = 0; rank < plan.collective.ranks; ++rank) {
      Rank& made = ranks_.emplace_back();
      made.image = std::make_unique<Image>(flatten(plan, rank));
      made.program = std::make_unique<gpu::ProgramLayout>(*made.image, plan.collective, strands);
      made.memory = zeroed(made.program->bytes());
      made.written =
          made.program->write({made.memory.get(), made.program->bytes()}, made.memory.get());
      for (std::uint32_t strand = 0; strand < strands; ++strand) {
        auto** to = reinterpret_cast<gpu::End**>(made.memory.get() + made.program->ends_of(strand));
        for (const Port& port : made.image->ports) *to++ = &end(rank, port, strand);
      }
    }
  }

  /// Each block is a thread of nobody's: one thread steps all lanes of all ranks in a seeded order.
  bool run(const JobCall& call) {
    start(call);
    std::vector<gpu::BlockMemory*> blocks;
    std::vector<AlignedBytes> memories;
    for (Rank& rank : ranks_)
      for (const gpu::Work& work : works_of(rank)) {
        std::byte* const memory =
            memories.emplace_back(allocate_aligned(rank.program->block_bytes())).get();
        gpu::lay_out(memory, rank.call, work);
        blocks.push_back(reinterpret_cast<gpu::BlockMemory*>(memory));
      }
    std::mt19937_64 random(call.seed);
    const auto step = [&](std::size_t block) {
      return advance(blocks[block]->engine, LoneThread{}, blocks[block]->lane,
                     1 + int(random() % 4));
    };
    return step_all(blocks.size(), random, step) && is_right(call);
  }

  /// Each block is `members` threads, all at once.
  bool run_threads(const JobCall& call, unsigned members) {
    start(call);
    std::vector<std::thread> threads;
    std::vector<AlignedBytes> memories;
    std::vector<std::unique_ptr<std::barrier<>>> meetings;
    for (Rank& rank : ranks_)
      for (const gpu::Work& work : works_of(rank)) {
        std::byte* const memory =
            memories.emplace_back(allocate_aligned(rank.program->block_bytes())).get();
        auto& meeting = *meetings.emplace_back(std::make_unique<std::barrier<>>(members));
        for (unsigned member = 0; member < members; ++member)
          threads.emplace_back([=, &rank, &meeting] {
            gpu::run_lane(BlockThread(meeting, member, members), rank.call, work, memory);
          });
      }
    for (std::thread& thread : threads) thread.join();
    return is_right(call);
  }

  /// No kernel has failed, and all outputs and what lies around them are as they should be.
  bool is_right(const JobCall& call) {
    for (const Rank& rank : ranks_)
      if (rank.report.failure != 0 || rank.report.stopped != 0) return false;
    return data_.right(call, layout_.slot_bytes);
  }

  /// What the host writes and reads while kernels run.
  std::uint32_t stop = 0;
  const gpu::Report& report(int rank) const { return ranks_[std::size_t(rank)].report; }
  /// Added to that of rank 0, so that it makes another call.
  std::uint32_t digest_of_rank_0 = 0;

  /// Without waiting for anyone: for calls that are to fail.
  void start(const JobCall& call);
  template <class Team>
  void run_one(int rank, std::uint32_t lane, const Team& team) {
    Rank& own = ranks_[std::size_t(rank)];
    const AlignedBytes memory = allocate_aligned(own.program->block_bytes());
    gpu::run_lane(team, own.call, {lane, 0}, memory.get());
  }

 private:
  struct Rank {
    std::unique_ptr<Image> image;
    std::unique_ptr<gpu::ProgramLayout> program;
    AlignedBytes memory, scratch;
    gpu::Program written;
    gpu::Call call;
    gpu::Report report;
  };

  static std::vector<gpu::Work> works_of(const Rank& rank) {
    std::vector<gpu::Work> works;
    for (std::uint32_t strand = 0; strand < rank.call.strands(); ++strand)
      for (std::uint32_t lane = 0; lane < rank.written.lane_count; ++lane)
        works.push_back({lane, strand});
    return works;
  }
  gpu::End& end(int rank, const Port& port, std::uint32_t strand) {
    const int from = port.sends ? rank : port.peer, to = port.sends ? port.peer : rank;
    const auto [found, made] = channels_.try_emplace({from, to, port.index, strand}, layout_);
    GpuChannel& channel = found->second;
    if (made) channel.sender.peer_device = channel.receiver.peer_device = 1;
    return port.sends ? channel.sender : channel.receiver;
  }

  const Plan& plan_;
  gpu::Layout layout_;
  Partials partials_;
  gpu::Direct direct_;
  std::map<std::tuple<int, int, std::uint8_t, std::uint32_t>, GpuChannel> channels_;
  std::vector<Rank> ranks_;
  JobData data_;
};

inline void GpuJob::start(const JobCall& call) {
  data_.draw(call);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    CallArguments arguments = data_.arguments(call, int(i));
    if (i == 0) arguments.digest += digest_of_rank_0;
    const CallShape shape =
        shape_of(*rank.image, plan_.collective, arguments, partials_, layout_.slot_bytes);
    const std::size_t partials = shape.scratch_stride * std::size_t(rank.image->scratch_chunks);
    rank.scratch = zeroed(partials * rank.written.strand_count + 1);
    rank.report = {};
    JobBuffers& buffers = data_.buffers(int(i));
    gpu::CallMemory memory;
    memory.input = buffers.input();
    memory.output = buffers.output();
    memory.scratch = rank.scratch.get();
    memory.scratch_of_strand = partials;
    memory.direct = direct_;
    memory.direct.flag = call.in_place ? gpu::stage_lends_in_place : gpu::stage_lends;
    memory.weights = rank.program->weights(rank.memory.get());
    memory.stop = &stop;
    memory.report = &rank.report;
    rank.call = gpu::make_call(rank.written, shape, arguments, partials_, memory);
  }
}

}  // namespace khoro::test
