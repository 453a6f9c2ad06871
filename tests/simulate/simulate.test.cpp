// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "support/catch.h"

using namespace khoro;

namespace {

constexpr double rate = 25e9, latency = 2e-6;

/// GPUs on one switch, each with a link of `rate` each way; half of the latency on either side.
Topology on_one_switch(int gpus) {
  Topology topology;
  const int fabric = topology.add({SiteKind::fabric, "fabric0", 0, {}});
  for (int i = 0; i < gpus; ++i) {
    const int gpu = topology.add({SiteKind::gpu, fmt::format("gpu{}", i), 0, {}});
    topology.connect(
        gpu, fabric,
        {.kind = LinkKind::nvlink, .bytes_per_second = rate, .latency_seconds = latency / 2});
    topology.place.push_back(gpu);
  }
  return topology;
}

Simulation play(CollectiveKind kind, const char* algorithm, int ranks, std::size_t bytes,
                std::size_t slot_bytes = std::size_t{1} << 40) {
  const Topology topology = on_one_switch(ranks);
  const Plan plan = make_plan(*find_algorithm(kind, algorithm), {kind, ranks}, topology, {1, 8});
  return simulate(plan, topology, {bytes, 8, slot_bytes});
}

}  // namespace

TEST_CASE("an uncontended ring takes exactly the time of its closed form", "[simulate]") {
  for (const int ranks : {2, 3, 4, 8, 16}) {
    const std::size_t bytes = static_cast<std::size_t>(ranks) * 128 * 1000;
    const double chunk = static_cast<double>(bytes) / ranks;
    const Simulation timeline = play(CollectiveKind::allreduce, "ring", ranks, bytes);
    INFO(ranks);
    CHECK(timeline.stuck.empty());
    CHECK(timeline.seconds == Approx(2 * (ranks - 1) * (latency + chunk / rate)).epsilon(1e-12));
    CHECK(timeline.transfers.size() == static_cast<std::size_t>(2 * (ranks - 1) * ranks));
    for (const double moved : timeline.link_bytes) CHECK(moved == 2 * (ranks - 1) * chunk);
  }
}

TEST_CASE("a message to two at once takes twice as long on one link", "[simulate]") {
  const std::size_t bytes = 1'000'000;
  const Simulation timeline = play(CollectiveKind::gather, "linear", 3, bytes);
  CHECK(timeline.seconds == Approx(2 * bytes / rate + latency));
}

TEST_CASE("latency alone counts where there are no bytes", "[simulate]") {
  const Simulation timeline = play(CollectiveKind::barrier, "dissemination", 8, 0);
  CHECK(timeline.stuck.empty());
  CHECK(timeline.seconds == Approx(3 * latency).epsilon(1e-12));
}

TEST_CASE("tiles of a long call follow each other through a chain", "[simulate]") {
  const std::size_t tile = std::size_t{1} << 16;
  const int tiles = 64, ranks = 4;
  const Simulation timeline = play(CollectiveKind::broadcast, "chain", ranks, tile * tiles, tile);
  CHECK(timeline.seconds ==
        Approx((ranks - 1) * (latency + tile / rate) + (tiles - 1) * (tile / rate)).epsilon(1e-9));
}

TEST_CASE("every algorithm ends, and moves the bytes of its formula", "[simulate]") {
  for (const Algorithm* algorithm : algorithms())
    for (const int ranks : {2, 5, 8}) {
      const Topology topology = on_one_switch(ranks);
      const Collective collective{algorithm->collective, ranks};
      const Shape shape{1, 8};
      const Plan plan = make_plan(*algorithm, collective, topology, shape);
      const std::size_t block = 128 * 840;  // cut evenly by every number of chunks here
      const std::size_t whole = block * static_cast<std::size_t>(collective.blocks());
      const Simulation timeline = simulate(plan, topology, {block, 8, std::size_t{1} << 40});
      INFO(plan.name() << " " << ranks << ": " << timeline.stuck);
      CHECK(timeline.stuck.empty());
      const Cost cost = algorithm->cost(collective, topology, shape);
      CHECK(timeline.seconds >= cost.rounds * latency * (1 - 1e-9));
      double most = 0;  // leaves a rank
      for (std::size_t i = 0; i < topology.links.size(); i += 2)
        most = std::max(most, timeline.link_bytes[i]);
      if (collective.kind != CollectiveKind::barrier)
        CHECK(most == Approx(cost.sent_per_byte * static_cast<double>(whole)).epsilon(.02));
    }
}

TEST_CASE("a plan that waits for ever is told", "[simulate]") {
  const Topology topology = on_one_switch(4);
  const Plan plan = make_plan(*find_algorithm(CollectiveKind::allreduce, "ring"),
                              {CollectiveKind::allreduce, 4}, topology, {1, 1});
  Plan reversed = plan;
  reversed.program = [](int) {
    Program program;
    program.lanes.push_back([]() -> Lane { co_yield recv(0) | write(output(0)); }());
    return program;
  };
  const Simulation timeline = simulate(reversed, topology, {1024, 1, 1024});
  CHECK(timeline.stuck == "rank 0 lane 0 waits in tile 0 of 1");
}

TEST_CASE("ranks that nothing joins are named", "[simulate]") {
  Topology topology = on_one_switch(2);
  topology.links.clear();
  const Plan plan = make_plan(*find_algorithm(CollectiveKind::allreduce, "ring"),
                              {CollectiveKind::allreduce, 2}, topology, {1, 8});
  CHECK_THROWS_WITH(simulate(plan, topology, {1024, 8, 1024}),
                    "rank 0 sends to rank 1, and nothing joins gpu0 and gpu1");
}
