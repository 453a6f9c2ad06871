// SPDX-License-Identifier: Apache-2.0
// Plans that are made of plans of parts, by which machine the ranks are on.
#include <algorithm>
#include <random>

#include "algorithms/algorithm.h"
#include "plan/proofs.h"
#include "plan/text.h"
#include "support/catch.h"
#include "support/groupings.h"
#include "support/seeds.h"
#include "support/walk.h"

using namespace khoro;

namespace {

const Algorithm& two_level(CollectiveKind kind) { return *find_algorithm(kind, "two-level"); }

Plan two_level(const Collective& collective, const test::Grouping& machines) {
  return make_plan(two_level(collective.kind), collective, Topology::machines(machines), Shape{});
}

std::vector<const Algorithm*> all_by_machine() {
  std::vector<const Algorithm*> all;
  for (const Algorithm* algorithm : algorithms())
    if (algorithm->by_machine) all.push_back(algorithm);
  return all;
}

/// Chunks of the widest span of a step: its value has as many.
int chunks_of(const Step& step) {
  int chunks = 0;
  for (const Stage& stage : step.stages()) chunks = std::max(chunks, stage.last - stage.first);
  return chunks;
}

/// Chunks that go from one machine to another.
int sent_between(const Plan& plan, const test::Grouping& machines) {
  const auto machine = [&](int rank) { return machines[std::size_t(rank)]; };
  int chunks = 0;
  for (int rank = 0; rank < plan.collective.ranks; ++rank) {
    Program program = plan.program(rank);
    for (Lane& lane : program.lanes)
      while (const Step* step = lane.next())
        for (const Stage& stage : step->stages())
          if (stage.verb == Verb::send && machine(stage.peer()) != machine(rank))
            chunks += chunks_of(*step);
  }
  return chunks;
}

/// The least that can go between `machines`, in chunks: a sum of each machine, or what others have
/// and it has not.
int least_between(const Plan& plan, const test::Grouping& machines) {
  test::Grouping distinct = machines;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const int others = int(distinct.size()) - 1;
  const auto at_root =
      std::count(machines.begin(), machines.end(), machines[std::size_t(plan.collective.root)]);
  switch (plan.collective.kind) {
    case CollectiveKind::allreduce:
      return 2 * others * plan.chunks;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return plan.collective.ranks - int(at_root);
    default:
      return others * plan.chunks;
  }
}

}  // namespace

TEST_CASE("ranks may be on any machines", "[algorithms]") {
  test::for_each_seed(150, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const int ranks = 1 + int(random() % 48);
    const test::Grouping machines = test::random_grouping(ranks, seed);
    for (const Algorithm* algorithm : all_by_machine()) {
      const int root = Collective{algorithm->collective}.has_root() ? int(random() % ranks) : 0;
      const bool average = Collective{algorithm->collective}.reduces() && random() % 2 == 0;
      const Collective collective{algorithm->collective, ranks, root, average};
      const Topology topology = Topology::machines(machines);
      const Plan plan = make_plan(*algorithm, collective, topology, Shape{});
      INFO(plan.name() << " machines " << test::text(machines) << " root " << root << " average "
                       << average);
      CHECK(prove(plan, algorithm->least_slots).failures.empty());
      const test::Walk walk = test::walk(plan);
      const Cost cost = algorithm->cost(collective, topology, Shape{});
      CHECK(walk.rounds == cost.rounds);
      const int most = *std::max_element(walk.sent.begin(), walk.sent.end());
      CHECK(double(most) / plan.chunks == Approx(cost.sent_per_byte));
    }
  });
}

TEST_CASE("between machines goes no more than must", "[algorithms]") {
  for (const Algorithm* algorithm : all_by_machine())
    for (int ranks : {1, 2, 3, 6, 11, 16, 24})
      for (const test::Grouping& machines : test::groupings_of(ranks))
        for (int root = 0; root < (Collective{algorithm->collective}.has_root() ? ranks : 1);
             ++root) {
          const Plan plan = two_level({algorithm->collective, ranks, root}, machines);
          INFO(plan.name() << " machines " << test::text(machines) << " root " << root);
          CHECK(sent_between(plan, machines) == least_between(plan, machines));
        }
}

TEST_CASE("how machines are numbered makes no difference", "[algorithms]") {
  for (const Algorithm* algorithm : all_by_machine()) {
    const Plan plan = two_level({algorithm->collective, 5}, {0, 1, 0, 2, 1});
    const Plan other = two_level({algorithm->collective, 5}, {7, -3, 7, 4, -3});
    CHECK(print(plan) == print(other));
  }
}

TEST_CASE("with a rank on each machine only what goes between machines is left", "[algorithms]") {
  const test::Grouping machines = {0, 1, 2, 3, 4};
  const auto same = [&](CollectiveKind kind, std::string_view name) {
    const Collective collective{kind, 5, Collective{kind}.has_root() ? 3 : 0};
    const Plan plan = two_level(collective, machines);
    const Plan other =
        make_plan(*find_algorithm(kind, name), collective, Topology::machines(machines), Shape{});
    for (int rank = 0; rank < 5; ++rank) CHECK(print_rank(plan, rank) == print_rank(other, rank));
  };
  same(CollectiveKind::allreduce, "two-shot");
  same(CollectiveKind::reduce, "binomial");
  same(CollectiveKind::broadcast, "binomial");
  same(CollectiveKind::reducescatter, "ring");
  same(CollectiveKind::scatter, "linear");
}

TEST_CASE("sums are folded in each machine first", "[algorithms]") {
  const test::Walk walk = test::walk(two_level({CollectiveKind::allreduce, 5}, {0, 1, 0, 1, 1}));
  REQUIRE(walk.finished);
  // The smaller machine has two ranks, and there are two machines: four chunks.
  const std::vector<std::string> sums = {
      "((2.0+0.0)+((3.0+4.0)+1.0))", "((2.1+0.1)+((3.1+4.1)+1.1))", "((0.2+2.2)+((4.2+1.2)+3.2))",
      "((0.3+2.3)+((4.3+1.3)+3.3))"};
  for (const auto& output : walk.outputs) CHECK(output == sums);
}
