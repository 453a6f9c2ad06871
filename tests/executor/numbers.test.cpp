// SPDX-License-Identifier: Apache-2.0
// What settings promise of the bits of a reduction.
#include <vector>

#include "support/catch.h"
#include "support/memory_job.h"

using namespace khoro;
using test::JobCall;
using test::MemoryJob;
using test::Scalar;

namespace {

const std::vector<int> rank_counts{1, 2, 3, 4, 5, 8, 9};

/// Every plan of the registry that reduces, and its algorithm.
template <class F>
void for_each_reduction(F&& f) {
  test::for_each_plan(rank_counts, [&](const Algorithm& algorithm, const Plan& plan) {
    if (plan.collective.reduces()) f(algorithm, plan);
  });
}

/// Whether each output is the inputs of all ranks folded from the left in rank order and rounded
/// once, whatever the plan is. In one tile.
bool is_left_fold(test::Job& job, const Plan& plan, const JobCall& call) {
  const Collective& collective = plan.collective;
  const test::ScalarReference scalar({call.dtype, call.reduction, Partials::f32});
  const std::size_t size = find(call.dtype)->bytes;
  const std::vector<Scalar> given = job.factors();
  std::vector<const Scalar*> factors;
  for (const Scalar& factor : given) factors.push_back(&factor);
  for (int rank = 0; rank < collective.ranks; ++rank) {
    if (!collective.has_output(rank)) continue;
    const bool block = collective.kind == CollectiveKind::reducescatter;
    const std::size_t first = block ? static_cast<std::size_t>(rank) * call.count : 0;
    for (std::size_t i = 0; i < call.count; ++i) {
      std::vector<Scalar> row;
      for (const std::vector<std::byte>& input : job.inputs())
        row.push_back(scalar.at(input.data() + (first + i) * size, Form::dtype));
      const auto divisor = static_cast<std::uint32_t>(collective.average ? collective.ranks : 0);
      if (!scalar.equal(scalar.fold(Form::dtype, row, divisor, factors),
                        scalar.at(job.output(rank) + i * size, Form::dtype)))
        return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("partial sums and products of 16-bit floats are carried in f32 where that is chosen",
          "[executor]") {
  ExecutionOptions options;
  options.partials = Partials::f32;
  for_each_reduction([&](const Algorithm&, const Plan& plan) {
    MemoryJob job(plan, {2, 4096}, options);
    JobCall call;
    for (Dtype dtype : {Dtype::f16, Dtype::bf16})
      for (Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::max}) {
        call.dtype = dtype;
        call.reduction = plan.collective.average  ? Reduction::avg
                         : plan.collective.premul ? Reduction::premul
                                                  : reduction;
        for (std::size_t count : {1, 130, 3000}) {
          call.count = count;
          ++call.seed;
          call.in_place = call.seed % 2 == 0;
          INFO(text(plan, call));
          REQUIRE(job.run(call));
        }
      }
  });
}

TEST_CASE("what is folded in rank order has the bits of a left fold, rounded once", "[executor]") {
  ExecutionOptions options;
  options.partials = Partials::f32;
  int folded = 0;
  for_each_reduction([&](const Algorithm& algorithm, const Plan& plan) {
    if (!algorithm.rank_order) return;
    MemoryJob job(plan, {2, 65'536}, options);
    test::for_each_call(plan, {1, 131}, [&](const JobCall& call) {
      REQUIRE(job.run(call));
      REQUIRE(is_left_fold(*job.job, plan, call));
      ++folded;
    });
  });
  CHECK(folded > 1000);
}

TEST_CASE("partial results in f32 make other bits than those in the dtype", "[executor]") {
  const Plan plan = test::plan_of(*find_algorithm(CollectiveKind::allreduce, "ring"), 5, false);
  JobCall call;
  call.dtype = Dtype::bf16;
  call.count = 1000;
  std::vector<std::vector<std::byte>> outputs;
  for (Partials partials : {Partials::dtype, Partials::f32}) {
    ExecutionOptions options;
    options.partials = partials;
    MemoryJob job(plan, {2, 4096}, options);
    REQUIRE(job.run(call));
    outputs.emplace_back(job.job->output(0), job.job->output(0) + call.count * 2);
  }
  CHECK(outputs[0] != outputs[1]);
}
