// SPDX-License-Identifier: Apache-2.0
// What the search finds becomes a plan: it is proved, and reaches the rate that was found.
#include <algorithm>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/channel_lanes.h"
#include "plan/proofs.h"
#include "simulate/simulate.h"
#include "support/catch.h"
#include "topology/machines.h"
#include "topology/networks.h"
#include "topology/search.h"

using namespace khoro;

namespace {

struct NamedMachine {
  const char* name;
  Topology topology;
};

std::vector<NamedMachine> machines() {
  return {{"one switch", test::one_switch(8).topology},
          {"a mesh", test::full_mesh(8).topology},
          {"a hybrid cube mesh", test::hybrid_cube_mesh().topology},
          {"two sockets", test::two_sockets(4).topology},
          {"two pairs", test::two_pairs().topology},
          {"two machines over a network", test::hgx_machines(2).topology}};
}

constexpr CollectiveKind kinds[] = {CollectiveKind::allreduce, CollectiveKind::reducescatter,
                                    CollectiveKind::allgather};

Plan plan_of(CollectiveKind kind, const Topology& topology) {
  return make_plan(*find_algorithm(kind, "channels"), {kind, topology.ranks()}, topology, Shape{});
}

}  // namespace

TEST_CASE("plans of channels are proved on every kind of machine", "[simulate]") {
  for (const NamedMachine& machine : machines())
    for (const CollectiveKind kind : kinds)
      for (const int slots : {2, 3, 8}) {
        INFO(machine.name << ", " << name(kind) << ", slots " << slots);
        const Proofs proofs = prove(plan_of(kind, machine.topology), slots);
        CHECK(proofs.made > 0);
        CHECK(proofs.failures.empty());
      }
}

TEST_CASE("a plan of channels takes the time that their rates promise", "[simulate]") {
  constexpr std::size_t tile = std::size_t{256} << 10;
  for (const NamedMachine& machine : machines())
    for (const CollectiveKind kind : kinds) {
      const Plan plan = plan_of(kind, machine.topology);
      const auto ranks = static_cast<std::size_t>(plan.collective.ranks);
      const std::size_t whole = tile * static_cast<std::size_t>(plan.chunks) * 80;
      const std::size_t count = whole / static_cast<std::size_t>(plan.collective.blocks());
      const Simulation timeline = simulate(plan, machine.topology, {count, 8, tile});
      const double times = kind == CollectiveKind::allreduce ? 2 : 1;
      const double bus = times * static_cast<double>(ranks - 1) / static_cast<double>(ranks) *
                         static_cast<double>(whole) / timeline.seconds;
      const Answer found = search_channels(machine.topology, machine.topology.place).whole;
      INFO(machine.name << ", " << name(kind) << " by " << name(found.method));
      CHECK(timeline.stuck.empty());
      CHECK(bus <= found.bus * (1 + 1e-9));
      CHECK(bus >= found.bus * .9);
    }
}

TEST_CASE("more trees than lanes follow each other in lanes, and are proved", "[simulate]") {
  const Topology topology = test::copies(33, test::full_mesh(4), {0, 1, 2, 3}, 25).topology;
  const ChannelLanes lanes = lanes_of(topology);
  CHECK(lanes.trees.size() == 132);
  CHECK(lanes.trees_per_lane == 2);
  const Plan plan = plan_of(CollectiveKind::allgather, topology);
  const Proofs proofs = prove(plan, 2);
  CHECK(proofs.made > 0);
  CHECK(proofs.failures.empty());
}

TEST_CASE("several machines reach the rate that was found for them", "[simulate]") {
  constexpr std::size_t tile = std::size_t{256} << 10;
  const Topology topology = test::hgx_machines(5).topology;
  const Answer found = search_channels(topology, topology.place).whole;
  REQUIRE(found.method == Method::tiers);
  const Plan plan = plan_of(CollectiveKind::allreduce, topology);
  const std::size_t bytes = tile * static_cast<std::size_t>(plan.chunks) * 200;
  const Simulation timeline = simulate(plan, topology, {bytes, 8, tile});
  const double bus = 2.0 * 39 / 40 * static_cast<double>(bytes) / timeline.seconds;
  CHECK(timeline.stuck.empty());
  CHECK(bus >= found.bus * .9);
  CHECK(bus <= found.bus * 1.0001);
}

TEST_CASE("rings of unequal rates have unequal shares", "[simulate]") {
  // Two rings of three GPUs, one way round each; one way is three times as fast.
  test::Machine machine;
  machine.add_gpus(3);
  for (int gpu = 0; gpu < 3; ++gpu) {
    machine.topology.links.push_back({gpu, (gpu + 1) % 3, LinkKind::nvlink, 1, 60e9, 0});
    machine.topology.links.push_back({(gpu + 1) % 3, gpu, LinkKind::nvlink, 1, 20e9, 0});
  }
  const ChannelLanes lanes = lanes_of(machine.topology);
  REQUIRE(lanes.rings.size() == 2);
  const std::uint32_t one = lanes.weights[0], other = lanes.weights[1];
  CHECK(std::max(one, other) == Approx(3.0 * std::min(one, other)).epsilon(.01));
  const Plan plan = plan_of(CollectiveKind::allreduce, machine.topology);
  const std::size_t bytes = 128 * 3 * 4 * 10'000;
  const Simulation timeline = simulate(plan, machine.topology, {bytes, 8, std::size_t{1} << 40});
  CHECK(timeline.seconds == Approx(4.0 / 3 * bytes / 80e9).epsilon(.01));
}

TEST_CASE("ranks that share a site, or sit on none that is a GPU, are a ring in order",
          "[simulate]") {
  const ChannelLanes lanes = lanes_of(Topology::one_machine(4));
  CHECK(lanes.rings == std::vector<std::vector<int>>{{0, 1, 2, 3}});
  Topology shared = test::one_switch(2).topology;
  shared.place.push_back(shared.place.front());
  CHECK(lanes_of(shared).rings.size() == 1);
  CHECK(lanes_of(shared).trees.empty());
}
