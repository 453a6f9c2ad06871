// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/own_reduction.h"
#include "executor/execution.h"
#include "support/catch.h"
#include "support/elements.h"
#include "support/oracle.h"

namespace khoro::test {

/// One call as all ranks of a test make it.
struct JobCall {
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  std::size_t count = 0;
  bool in_place = false;
  std::size_t misalignment = 0;
  std::uint64_t seed = 1;
};

/// Takes memory from an arena if it has one.
template <class T>
struct MaybeShared {
  using value_type = T;
  Arena* arena = nullptr;

  T* allocate(std::size_t count) {
    if (arena) return reinterpret_cast<T*>(arena->allocate(count * sizeof(T)));
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* memory, std::size_t count) {
    if (!arena) return std::allocator<T>().deallocate(memory, count);
    arena->free(reinterpret_cast<std::byte*>(memory));
  }
  bool operator==(const MaybeShared&) const = default;
};

/// The buffers of one rank, with guard bytes around and between them.
class JobBuffers {
 public:
  JobBuffers(const Collective& collective, int rank, const JobCall& call, Arena* arena = nullptr)
      : memory_(MaybeShared<std::byte>{arena}) {
    const std::size_t block = call.count * find(call.dtype)->bytes;
    const std::size_t own = static_cast<std::size_t>(rank) * block;
    in_bytes_ = block * static_cast<std::size_t>(collective.input_blocks());
    out_bytes_ = block * static_cast<std::size_t>(collective.output_blocks());
    writable_ = collective.has_output(rank) ? out_bytes_ : 0;
    memory_.assign(in_bytes_ + out_bytes_ + 3 * guard + call.misalignment, guard_byte);
    out_ = guard + call.misalignment;
    in_ = out_ + out_bytes_ + guard;
    if (!call.in_place || !collective.has_input(rank) || !collective.has_output(rank)) return;
    in_ = out_;
    if (in_bytes_ > out_bytes_) out_ += own;
    if (out_bytes_ > in_bytes_) in_ += own;
  }

  std::span<std::byte> all() { return memory_; }
  std::byte* input() { return memory_.data() + in_; }
  std::byte* output() { return memory_.data() + out_; }
  std::size_t input_bytes() const { return in_bytes_; }

  /// Call it when the input is in place.
  void remember() { before_.assign(memory_.begin(), memory_.end()); }
  /// The caller has it all back, and writes over it.
  void spoil() { std::fill(memory_.begin(), memory_.end(), std::byte{0xee}); }
  /// Nothing but the output has changed. In place, output is part of input or input of output.
  bool rest_intact() const {
    const auto same = [&](std::size_t first, std::size_t last) {
      return std::memcmp(memory_.data() + first, before_.data() + first, last - first) == 0;
    };
    return same(0, out_) && same(out_ + writable_, memory_.size());
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr auto guard_byte = std::byte{0xa5};
  std::vector<std::byte, MaybeShared<std::byte>> memory_;
  std::vector<std::byte> before_;
  std::size_t in_bytes_ = 0, out_bytes_ = 0, writable_ = 0, in_ = 0, out_ = 0;
};

/// What all ranks of a plan bring to a call, and what they must get.
class JobData {
 public:
  /// The plan outlives it.
  explicit JobData(const Plan& plan, Partials partials = Partials::dtype)
      : plan_(plan), partials_(partials), signatures_(std::make_shared<Signatures>(plan)) {}

  /// Buffers are made in what the process of each rank shares, from now on.
  void share(std::vector<Arena*> arenas) { arenas_ = std::move(arenas); }

  /// Makes the buffers of a call.
  void draw(const JobCall& call) {
    std::mt19937_64 random(call.seed);
    buffers_.clear();
    inputs_.clear();
    owns_.assign(
        call.reduction == Reduction::premul ? std::size_t(plan_.collective.ranks) : std::size_t(0),
        {});
    for (OwnReduction& own : owns_) {
      own.dtype = call.dtype;
      fill_elements(own.factor.data(), 1, call.dtype, random);
    }
    for (int rank = 0; rank < plan_.collective.ranks; ++rank) {
      JobBuffers& buffers = buffers_.emplace_back(
          plan_.collective, rank, call, arenas_.empty() ? nullptr : arenas_[std::size_t(rank)]);
      const std::size_t bytes = buffers.input_bytes();
      fill_elements(buffers.input(), bytes / find(call.dtype)->bytes, call.dtype, random);
      inputs_.emplace_back(buffers.input(), buffers.input() + bytes);
      buffers.remember();
    }
  }

  JobBuffers& buffers(int rank) { return buffers_[std::size_t(rank)]; }
  const std::vector<std::vector<std::byte>>& inputs() const { return inputs_; }
  /// Of the ranks; empty unless the reduction has them.
  std::vector<Scalar> factors() const {
    std::vector<Scalar> factors;
    for (const OwnReduction& own : owns_) {
      Scalar& factor = factors.emplace_back();
      std::copy(own.factor.begin(), own.factor.end(), factor.bytes.begin());
    }
    return factors;
  }
  /// What a rank asks for; its buffers are those here.
  CallArguments arguments(const JobCall& call, int rank) {
    return {{buffers(rank).input(), buffers(rank).output()},
            call.count,
            call.dtype,
            call.reduction,
            static_cast<std::uint32_t>(call.seed),
            nullptr,
            owns_.empty() ? nullptr : &owns_[std::size_t(rank)]};
  }

  /// Bits of all outputs, and every other byte as it was.
  bool right(const JobCall& call, std::size_t slot_bytes) {
    const Arithmetic arithmetic{call.dtype, call.reduction, partials_};
    const Grid grid = grid_of(plan_, arithmetic, call.count, slot_bytes);
    Oracle oracle(plan_, signatures_, arithmetic, {&grid, 1}, inputs_, factors());
    for (int rank = 0; rank < plan_.collective.ranks; ++rank)
      if (!oracle.matches(rank, buffers(rank).output()) || !buffers(rank).rest_intact())
        return false;
    return true;
  }

 private:
  const Plan& plan_;
  Partials partials_;
  std::shared_ptr<const Signatures> signatures_;
  std::vector<Arena*> arenas_;  // by rank; empty: none
  std::vector<JobBuffers> buffers_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<OwnReduction> owns_;  // by rank
};

/// Steps so many programs in an order drawn from `random` until all are done; false when none can
/// move or one has failed. `step` is given the number of one.
template <class Step>
bool step_all(std::size_t count, std::mt19937_64& random, Step step) {
  std::vector<std::size_t> going(count);
  std::iota(going.begin(), going.end(), std::size_t(0));
  for (std::size_t idle = 0; !going.empty();) {
    // After so many looks in vain each has been asked for certain.
    if (idle > 64 * going.size() + 64) return false;
    const std::size_t chosen =
        idle > 32 * going.size() ? idle % going.size() : random() % going.size();
    const Progress progress = step(going[chosen]);
    if (progress == Progress::failed) return false;
    idle = progress == Progress::waiting ? idle + 1 : 0;
    if (progress == Progress::done) going.erase(going.begin() + static_cast<long>(chosen));
  }
  return true;
}

/// All ranks of a plan, each with its execution, stepped by one thread in a seeded order.
class Job {
 public:
  /// `ends` has one entry a rank and outlives the job, as the plan does.
  Job(const Plan& plan, std::vector<Ends*> ends, const ExecutionOptions& options = {})
      : data_(plan, options.partials) {
    for (int rank = 0; rank < plan.collective.ranks; ++rank)
      executions_.push_back(std::make_unique<Execution>(flatten(plan, rank), plan.collective,
                                                        *ends[std::size_t(rank)], options));
  }

  /// As JobData has it.
  void share(std::vector<Arena*> arenas) { data_.share(std::move(arenas)); }
  const std::vector<std::vector<std::byte>>& inputs() const { return data_.inputs(); }
  std::vector<Scalar> factors() const { return data_.factors(); }
  bool right(const JobCall& call, std::size_t slot_bytes) { return data_.right(call, slot_bytes); }

  const std::byte* output(int rank) { return data_.buffers(rank).output(); }
  Execution& execution(int rank) { return *executions_[std::size_t(rank)]; }

  /// Makes the buffers of a call and starts it everywhere.
  void start(const JobCall& call) {
    data_.draw(call);
    for (std::size_t rank = 0; rank < executions_.size(); ++rank)
      executions_[rank]->start(data_.arguments(call, int(rank)));
  }

  /// Steps the ranks in an order drawn from `seed` until all are done; false when none can move or
  /// one has failed.
  bool finish(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    return step_all(executions_.size(), random,
                    [&](std::size_t rank) { return executions_[rank]->advance(); });
  }

 private:
  JobData data_;
  std::vector<std::unique_ptr<Execution>> executions_;
};

}  // namespace khoro::test
