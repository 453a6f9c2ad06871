// SPDX-License-Identifier: Apache-2.0
#include "executor/execution.h"

#include "algorithms/algorithm.h"
#include "support/catch.h"
#include "support/job.h"
#include "support/memory_channel.h"

using namespace khoro;
using test::Job;
using test::JobCall;
using test::MemoryChannel;
using test::MemoryEnds;
using test::MemoryNetwork;

namespace {

/// A plan's ranks over memory channels.
struct MemoryJob {
  MemoryJob(const Plan& plan, const MemoryChannel::Shape& shape,
            const ExecutionOptions& options = {})
      : network(shape) {
    std::vector<Ends*> all;
    for (int rank = 0; rank < plan.collective.ranks; ++rank)
      all.push_back(ends.emplace_back(std::make_unique<MemoryEnds>(network, rank)).get());
    job = std::make_unique<Job>(plan, std::move(all), options);
  }
  MemoryNetwork network;
  std::vector<std::unique_ptr<MemoryEnds>> ends;
  std::unique_ptr<Job> job;
};

Plan plan_of(const Algorithm& algorithm, int ranks, bool average, int root = 0) {
  const Collective collective{algorithm.collective, ranks, root, average};
  return make_plan(algorithm, collective, Topology::one_machine(ranks), Shape{});
}

std::string text(const Plan& plan, const JobCall& call) {
  return plan.name() + " ranks " + std::to_string(plan.collective.ranks) + " root " +
         std::to_string(plan.collective.root) + " " + std::string(find(call.dtype)->name) + " " +
         std::string(find(call.reduction)->name) + " count " + std::to_string(call.count) +
         (call.in_place ? " in place" : "") + " misaligned " + std::to_string(call.misalignment) +
         " seed " + std::to_string(call.seed);
}

/// Every dtype and every reduction that the plan can be asked for, in and out of place, at these
/// counts.
void run_calls(const Plan& plan, const MemoryChannel::Shape& shape,
               const std::vector<std::size_t>& counts, const ExecutionOptions& options = {}) {
  MemoryJob memory(plan, shape, options);
  JobCall call;
  for (const DtypeRow& dtype : dtypes())
    for (const ReductionRow& reduction : reductions()) {
      const bool average = reduction.reduction == Reduction::avg;
      if (plan.collective.reduces() ? average != plan.collective.average
                                    : reduction.reduction != Reduction::sum)
        continue;
      call.dtype = dtype.dtype;
      call.reduction = reduction.reduction;
      for (std::size_t count : counts)
        for (bool in_place : {false, true}) {
          call.count = count;
          call.in_place = in_place;
          call.misalignment = call.seed % 9;
          ++call.seed;
          memory.job->start(call);
          INFO(text(plan, call));
          REQUIRE(memory.job->finish(call.seed));
          REQUIRE(memory.job->right(call, shape.slot_bytes));
          REQUIRE(memory.network.quiet());
        }
    }
}

}  // namespace

TEST_CASE("every algorithm gives the bits of its order signature at every small count",
          "[executor]") {
  for (const Algorithm* algorithm : algorithms())
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (bool average : {false, true}) {
        const Plan plan = plan_of(*algorithm, ranks, average, ranks / 2);
        if (average && !plan.collective.reduces()) continue;
        run_calls(plan, {static_cast<std::size_t>(algorithm->least_slots), 4096},
                  {0, 1, 2, 3, 17, 1000});
      }
}
