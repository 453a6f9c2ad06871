// SPDX-License-Identifier: Apache-2.0
#include "topology/search/forest.h"

#include <map>
#include <set>

#include "support/seeds.h"
#include "topology/bound.h"
#include "topology/check.h"
#include "topology/machines.h"
#include "topology/search/branching.h"

using namespace khoro;
using namespace khoro::test;

TEST_CASE("as many trees from each point as cuts allow are packed", "[topology]") {
  // Between any two of n points n units: each set of points is entered by n units from each other
  // one, and just so many trees begin outside of the largest sets.
  for (int points = 2; points <= 6; ++points)
    for (std::int64_t trees : {1, 2, 3}) {
      std::vector<std::int64_t> units(static_cast<std::size_t>(points * points), trees);
      for (int i = 0; i < points; ++i) units[static_cast<std::size_t>(i * points + i)] = 0;
      std::vector<std::int64_t> used(units.size());
      std::vector<std::int64_t> from(static_cast<std::size_t>(points));
      for (const Branching& branching : pack_branchings(
               std::vector<std::int64_t>(static_cast<std::size_t>(points), trees), units)) {
        CHECK(branching.edges.size() == static_cast<std::size_t>(points - 1));
        std::set<int> reached{branching.root};
        for (const auto& [one, other] : branching.edges) {
          CHECK(reached.count(one) == 1);
          CHECK(reached.insert(other).second);
          used[static_cast<std::size_t>(one * points + other)] += branching.trees;
        }
        from[static_cast<std::size_t>(branching.root)] += branching.trees;
      }
      CHECK(from == std::vector<std::int64_t>(static_cast<std::size_t>(points), trees));
      CHECK(used == units);  // nothing is left: (n - 1) trees from each of n points
    }
}

TEST_CASE("units that cannot suffice pack no trees", "[topology]") {
  std::vector<std::int64_t> units = {0, 1, 0, 1, 0, 1, 0, 1, 0};  // a chain of three
  CHECK(pack_branchings({1, 1, 1}, units).empty());
  for (std::int64_t& unit : units) unit *= 2;
  CHECK(pack_branchings({1, 1, 1}, units).size() == 3);
}

TEST_CASE("trees reach nearly the bound on machines on which rings do not", "[topology]") {
  const auto reached = [](const Machine& machine) {
    const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
    const double share = bound_of(graph).share;
    const Forest forest = pack_trees(graph, share, 8);
    CHECK(check_channels(machine.topology, machine.gpus(), forest.channels).empty());
    return forest.share / share;
  };
  CHECK(reached(two_sockets(4)) == Approx(1));
  CHECK(reached(two_sockets(8)) == Approx(1));
  CHECK(reached(two_pairs()) == Approx(1));
}

TEST_CASE("trees between GPUs and relays at random pass the check and the bound", "[topology]") {
  double worst = 1;
  for_each_seed(100, [&](std::uint64_t seed) {
    const Machine machine =
        random_machine(seed, 2 + static_cast<int>(seed % 7), static_cast<int>(seed % 5));
    const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
    const double share = bound_of(graph).share;
    const Forest forest = pack_trees(graph, share, 8);
    CHECK(forest.share <= share * (1 + 1e-9));
    if (share > 0) worst = std::min(worst, forest.share / share);
    const auto found = check_channels(machine.topology, machine.gpus(), forest.channels);
    CHECK((found.empty() ? "" : found.front().place + ": " + found.front().message) == "");
    CHECK(bus_bandwidth(forest.channels, machine.gpus().size()) ==
          Approx(forest.share * (graph.gpus - 1)));
  });
  CHECK(worst > 0.85);
}

TEST_CASE("trees use what links carry both ways", "[topology]") {
  Machine machine = full_mesh(3, 10);
  machine.topology.links[0].bytes_per_second = 5 * gb;
  const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::direct);
  const Forest forest = pack_trees(graph, bound_of(graph).share, 8);
  CHECK(forest.share > 5 * gb);
  CHECK(check_channels(machine.topology, machine.gpus(), forest.channels).empty());
}

TEST_CASE("GPUs with more data than others have more trees", "[topology]") {
  for (const Machine& machine : {hybrid_cube_mesh(), one_switch(8), two_sockets(4)}) {
    const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
    const std::vector<std::int64_t> weights = {1, 1, 9, 1, 3, 1, 1, 1};
    const Forest forest = pack_trees(graph, bound_of(graph).share, 4, weights);
    std::map<int, double> rates;
    for (const Channel& channel : forest.channels) rates[channel.root] += channel.bytes_per_second;
    REQUIRE(rates.size() == weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      CHECK(rates[graph.sites[i]] == Approx(forest.share * static_cast<double>(weights[i])));
    const std::vector<double> loads = loads_of(machine.topology, forest.channels);
    for (std::size_t i = 0; i < loads.size(); ++i)
      CHECK(loads[i] <= machine.topology.links[i].bytes_per_second * (1 + 1e-9));
  }
}
