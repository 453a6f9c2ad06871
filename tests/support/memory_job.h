// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "plan/text.h"
#include "support/groupings.h"
#include "support/job.h"
#include "support/memory_channel.h"

namespace khoro::test {

/// A plan's ranks over memory channels.
struct MemoryJob {
  /// `plan` outlives it.
  MemoryJob(const Plan& plan, const MemoryChannel::Shape& shape,
            const ExecutionOptions& options = {})
      : shape(shape), network(shape) {
    std::vector<Ends*> all;
    for (int rank = 0; rank < plan.collective.ranks; ++rank)
      all.push_back(ends.emplace_back(std::make_unique<MemoryEnds>(network, rank)).get());
    job = std::make_unique<Job>(plan, std::move(all), options);
  }

  /// Runs a call to its end; whether it ended, gave the right bits and left nothing behind.
  bool run(const JobCall& call) {
    job->start(call);
    return job->finish(call.seed) && job->right(call, shape.slot_bytes) && network.quiet();
  }

  MemoryChannel::Shape shape;
  MemoryNetwork network;
  std::vector<std::unique_ptr<MemoryEnds>> ends;
  std::unique_ptr<Job> job;
};

inline Plan plan_of(const Algorithm& algorithm, int ranks, bool average, int root = 0) {
  const Collective collective{algorithm.collective, ranks, root, average};
  const Topology topology = Topology::machines(one_grouping_for(algorithm, ranks));
  return make_plan(algorithm, collective, topology, Shape{});
}

/// The plan of a text that must be right.
inline Plan plan_from(std::string_view text) {
  Parsed parsed = parse(text);
  for (const Diagnostic& diagnostic : parsed.diagnostics) UNSCOPED_INFO(diagnostic.message);
  REQUIRE(parsed.plan);
  return std::move(*parsed.plan);
}

inline std::string text(const Plan& plan, const JobCall& call) {
  return plan.name() + " ranks " + std::to_string(plan.collective.ranks) + " root " +
         std::to_string(plan.collective.root) + " " + std::string(find(call.dtype)->name) + " " +
         std::string(find(call.reduction)->name) + " count " + std::to_string(call.count) +
         (call.in_place ? " in place" : "") + " misaligned " + std::to_string(call.misalignment) +
         " seed " + std::to_string(call.seed);
}

/// What for_each_call() asks of a plan for a dtype. Calls without a reduction name a sum.
inline std::vector<Reduction> reductions_of(const Plan& plan, Dtype dtype) {
  if (plan.collective.average) return {Reduction::avg};
  if (plan.collective.premul) return {Reduction::premul};
  if (!plan.collective.reduces()) return {Reduction::sum};
  std::vector<Reduction> others;
  for (const ReductionRow& row : reductions())
    if (row.reduction != Reduction::sum && row.reduction != Reduction::avg &&
        applies(row.reduction, dtype))
      others.push_back(row.reduction);
  const auto turn = static_cast<std::size_t>(dtype) + static_cast<std::size_t>(plan.chunks);
  return {Reduction::sum, others[turn % others.size()]};
}

/// The calls that a plan can be asked for: every dtype, with the sum or the average and one other
/// reduction by turns, in and out of place, at these counts, at changing alignments. Calls
/// `run(call)`.
template <class F>
void for_each_call(const Plan& plan, const std::vector<std::size_t>& counts, F&& run) {
  JobCall call;
  for (const DtypeRow& dtype : dtypes())
    for (Reduction reduction : reductions_of(plan, dtype.dtype)) {
      call.dtype = dtype.dtype;
      call.reduction = reduction;
      for (std::size_t count : counts)
        for (bool in_place : {false, true}) {
          call.count = count;
          call.in_place = in_place;
          call.misalignment = call.seed % 9;
          ++call.seed;
          INFO(text(plan, call));
          run(call);
        }
    }
}

/// Every plan of the registry for these ranks, also with the division of an average and with
/// factors.
template <class F>
void for_each_plan(const std::vector<int>& ranks, F&& f) {
  for (const Algorithm* algorithm : algorithms())
    for (int count : ranks)
      for (bool average : {false, true}) {
        const Plan plan = plan_of(*algorithm, count, average, count / 2);
        if (!average || plan.collective.reduces()) f(*algorithm, plan);
      }
  for (const Algorithm* algorithm : algorithms())
    for (int count : ranks) {
      Collective collective{algorithm->collective, count, count / 2};
      collective.premul = collective.reduces();
      if (collective.premul)
        f(*algorithm, make_plan(*algorithm, collective, Topology::one_machine(count), Shape{}));
    }
}

}  // namespace khoro::test
