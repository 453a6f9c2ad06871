// SPDX-License-Identifier: Apache-2.0
#include "topology/bound.h"

#include <algorithm>
#include <limits>

#include "support/seeds.h"
#include "topology/machines.h"

using namespace khoro;
using namespace khoro::test;

namespace {

Bound bound_of(const Machine& machine, LinkChoice links) {
  return bound_of(graph_of(machine.topology, machine.gpus(), links));
}

/// Bus and ring bounds by trying every set of sites.
std::pair<double, double> by_all_sets(const Machine& machine, int gpus) {
  const auto sites = machine.topology.sites.size();
  double share = std::numeric_limits<double>::infinity(), ring = share;
  for (std::uint32_t set = 1; set < 1U << sites; ++set) {
    double capacity = 0;
    for (const Link& link : machine.topology.links)
      if (set >> link.from & 1 && !(set >> link.to & 1)) capacity += link.bytes_per_second;
    int inside = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) inside += set >> gpu & 1;
    if (inside == 0 || inside == gpus) continue;
    share = std::min(share, capacity / inside);
    ring = std::min(ring, capacity);
  }
  return {share * (gpus - 1), ring};
}

/// The largest flow between two sites of a small machine, by trying every set.
double by_all_cuts(const Machine& machine, int from, int to) {
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t set = 0; set < 1U << machine.topology.sites.size(); ++set) {
    if (!(set >> from & 1) || set >> to & 1) continue;
    double capacity = 0;
    for (const Link& link : machine.topology.links)
      if (set >> link.from & 1 && !(set >> link.to & 1)) capacity += link.bytes_per_second;
    least = std::min(least, capacity);
  }
  return least;
}

}  // namespace

TEST_CASE("bounds of machines are those that their links add up to", "[topology]") {
  CHECK(bound_of(one_switch(8), LinkChoice::direct).bus == Approx(370.8 * gb));
  CHECK(bound_of(one_switch(72, 721.8), LinkChoice::direct).bus == Approx(721.8 * gb));
  CHECK(bound_of(hybrid_cube_mesh(), LinkChoice::direct).bus == Approx(120 * gb));
  CHECK(bound_of(hybrid_cube_mesh(), LinkChoice::all).bus == Approx(132 * gb));
  CHECK(bound_of(full_mesh(8), LinkChoice::direct).bus == Approx(336 * gb));
  CHECK(bound_of(two_sockets(4), LinkChoice::all).bus == Approx(17.5 * gb));
  CHECK(bound_of(two_sockets(4), LinkChoice::all).ring == Approx(10 * gb));
  CHECK(bound_of(two_pairs(), LinkChoice::all).bus == Approx(36 * gb));
}

TEST_CASE("links that do not join all GPUs bound everything to nothing", "[topology]") {
  CHECK(bound_of(two_pairs(), LinkChoice::direct).bus == 0);
  CHECK(bound_of(two_pairs(), LinkChoice::direct).ring == 0);
  CHECK(bound_of(two_sockets(4), LinkChoice::direct).bus == 0);
}

TEST_CASE("fewer than two GPUs have no bound", "[topology]") {
  const Machine machine = one_switch(2);
  CHECK(bound_of(graph_of(machine.topology, std::vector<int>(), LinkChoice::all)).bus == 0);
  CHECK(bound_of(graph_of(machine.topology, std::vector(1, machine.gpus()[0]), LinkChoice::all))
            .bus == 0);
}

TEST_CASE("a bound is that of the worst of all sets of sites", "[topology]") {
  for_each_seed(150, [](std::uint64_t seed) {
    const int gpus = 2 + static_cast<int>(seed % 5), relays = static_cast<int>(seed % 4);
    const Machine machine = random_machine(seed, gpus, relays);
    const auto [bus, ring] = by_all_sets(machine, gpus);
    const Bound bound = bound_of(machine, LinkChoice::all);
    CHECK(bound.bus == Approx(bus).epsilon(1e-12));
    CHECK(bound.ring == Approx(ring).epsilon(1e-12));
  });
}

TEST_CASE("the best broadcast is that to the GPU that is hardest to reach", "[topology]") {
  for_each_seed(40, [](std::uint64_t seed) {
    const Machine machine = random_machine(seed, 4, 2);
    const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
    const std::vector<double> bounds = broadcast_bounds(graph);
    double worst = std::numeric_limits<double>::infinity();
    for (int root = 0; root < 4; ++root) {
      double least = std::numeric_limits<double>::infinity();
      for (int to = 0; to < 4; ++to)
        if (to != root) least = std::min(least, by_all_cuts(machine, root, to));
      CHECK(bounds[static_cast<std::size_t>(root)] == Approx(least));
      worst = std::min(worst, least);
    }
    CHECK(bound_of(graph).ring == Approx(worst));
  });
}

TEST_CASE("a bound names the sites that are cut off and the links that limit them", "[topology]") {
  const Machine machine = two_sockets(4);
  const Bound bound = bound_of(machine, LinkChoice::all);
  REQUIRE(bound.bus_cut.links.size() == 1);
  const Link& link = machine.topology.links[static_cast<std::size_t>(bound.bus_cut.links[0])];
  CHECK(link.kind == LinkKind::socket);
  CHECK(std::count_if(bound.bus_cut.sites.begin(), bound.bus_cut.sites.end(), [&](int site) {
          return machine.topology.site(site).kind == SiteKind::gpu;
        }) == 4);
}

TEST_CASE("GPUs that are not asked for relay nothing", "[topology]") {
  Machine chain;
  chain.add_gpus(3);
  chain.join(0, 1, LinkKind::nvlink, 20);
  chain.join(1, 2, LinkKind::nvlink, 20);
  const std::vector<int> ends = {0, 2};
  CHECK(bound_of(graph_of(chain.topology, ends, LinkChoice::all)).bus == 0);
}
