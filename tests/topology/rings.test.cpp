// SPDX-License-Identifier: Apache-2.0
#include "topology/search/rings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "support/seeds.h"
#include "topology/bound.h"
#include "topology/check.h"
#include "topology/machines.h"
#include "topology/search/hamiltonian.h"
#include "topology/search/packing.h"

using namespace khoro;
using namespace khoro::test;

namespace {

/// All orders of points that begin with the first.
std::vector<Cycle> all_cycles(int points) {
  Cycle cycle(static_cast<std::size_t>(points));
  std::iota(cycle.begin(), cycle.end(), 0);
  std::vector<Cycle> cycles;
  do cycles.push_back(cycle);
  while (std::next_permutation(cycle.begin() + 1, cycle.end()));
  return cycles;
}

Costs random_costs(std::uint64_t seed, int points) {
  std::mt19937_64 random(seed);
  Costs costs(points);
  for (double& value : costs.values) value = static_cast<double>(random() % 10);
  return costs;
}

/// The most that rings can carry between GPUs joined by direct links alone, by listing all rings.
double by_all_rings(const Graph& graph) {
  std::map<std::pair<int, int>, int> edges;
  std::vector<double> capacities;
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    edges[{graph.edges[i].from, graph.edges[i].to}] = static_cast<int>(i);
    capacities.push_back(static_cast<double>(graph.edges[i].capacity) / gb);
  }
  Packing packing(capacities);
  for (const Cycle& cycle : all_cycles(graph.gpus)) {
    Packing::Column column;
    for (std::size_t i = 0; i < cycle.size(); ++i)
      if (const auto edge = edges.find({cycle[i], cycle[(i + 1) % cycle.size()]});
          edge != edges.end())
        column.emplace_back(edge->second, 1);
    if (column.size() == cycle.size()) packing.add(std::move(column));
  }
  packing.solve();
  return packing.value() * gb;
}

}  // namespace

TEST_CASE("a packing is as good as its prices say that any can be", "[topology]") {
  for_each_seed(100, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<double> capacities(8);
    for (double& capacity : capacities) capacity = static_cast<double>(random() % 5);
    Packing packing(capacities);
    std::vector<Packing::Column> columns(20);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      for (int row = 0; row < 8; ++row)
        if (random() % 3 == 0 || row == static_cast<int>(i % 8))
          columns[i].emplace_back(row, static_cast<double>(1 + random() % 2));
      packing.add(columns[i]);
      if (i % 5 == 4) packing.solve();
    }
    std::vector<double> load(8);
    const std::vector<double> amounts = packing.amounts();
    double worth = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      CHECK(amounts[i] >= 0);
      double price = 0;
      for (const auto& [row, used] : columns[i]) {
        load[static_cast<std::size_t>(row)] += used * amounts[i];
        price += used * packing.prices()[static_cast<std::size_t>(row)];
      }
      CHECK(price >= 1 - 1e-8);
    }
    for (std::size_t row = 0; row < 8; ++row) {
      CHECK(load[row] <= capacities[row] + 1e-9);
      CHECK(packing.prices()[row] >= -1e-8);
      worth += packing.prices()[row] * capacities[row];
    }
    CHECK(packing.value() == Approx(worth).margin(1e-8));
  });
}

TEST_CASE("the cheapest cycle is the cheapest of all", "[topology]") {
  for_each_seed(60, [](std::uint64_t seed) {
    const int points = 2 + static_cast<int>(seed % 6);
    const Costs costs = random_costs(seed, points);
    double least = 1e9;
    for (const Cycle& cycle : all_cycles(points)) least = std::min(least, cost_of(cycle, costs));
    CHECK(cost_of(cheapest_cycles(costs).front(), costs) == least);
    for (const std::vector<Cycle>& found : {cheapest_cycles(costs), cheap_cycles(costs)})
      for (Cycle cycle : found) {
        CHECK(cycle.front() == 0);
        CHECK(cost_of(cycle, costs) >= least);
        std::sort(cycle.begin(), cycle.end());
        CHECK(cycle == all_cycles(points).front());
      }
  });
}

TEST_CASE("orders of many points improve to within a fifth of the cheapest", "[topology]") {
  double found = 0, least = 0;
  for_each_seed(10, [&](std::uint64_t seed) {
    const Costs costs = random_costs(seed, 12);
    found += 1 + cost_of(cheap_cycles(costs).front(), costs);
    least += 1 + cost_of(cheapest_cycles(costs).front(), costs);
  });
  CHECK(found <= 1.2 * least);
}

TEST_CASE("Hamiltonian cycles use each way between two points once", "[topology]") {
  for (int points = 2; points <= 34; ++points) {
    INFO(points << " points");
    const std::vector<Cycle> cycles = hamiltonian_cycles(points);
    if (points == 4 || points == 6) {
      CHECK(cycles.empty());
      continue;
    }
    REQUIRE(cycles.size() == static_cast<std::size_t>(points - 1));
    std::set<std::pair<int, int>> ways;
    for (const Cycle& cycle : cycles) {
      CHECK(std::set<int>(cycle.begin(), cycle.end()).size() == static_cast<std::size_t>(points));
      for (std::size_t i = 0; i < cycle.size(); ++i)
        ways.emplace(cycle[i], cycle[(i + 1) % cycle.size()]);
    }
    CHECK(ways.size() == static_cast<std::size_t>(points * (points - 1)));
  }
}

TEST_CASE("rings carry as much as the best of all mixes of rings", "[topology]") {
  for_each_seed(80, [](std::uint64_t seed) {
    const Machine machine = random_machine(seed, 3 + static_cast<int>(seed % 4), 0);
    const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::direct);
    const Bound bound = bound_of(graph);
    const Rings rings = pack_rings(graph, bound.ring, 1000);
    const double best = by_all_rings(graph);
    CHECK(rings.bytes_per_second >= 0.999 * best);
    CHECK(rings.bytes_per_second <= best * (1 + 1e-9));
    CHECK((bound.ring == 0 || rings.limit >= best * (1 - 1e-9)));
    CHECK(check_channels(machine.topology, machine.gpus(), rings.channels).empty());
  });
}

TEST_CASE("rings through relays load no link too much", "[topology]") {
  for_each_seed(60, [](std::uint64_t seed) {
    const Machine machine = random_machine(seed, 3 + static_cast<int>(seed % 6), 4);
    const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
    const Bound bound = bound_of(graph);
    const Rings rings = pack_rings(graph, bound.ring, 32);
    CHECK(rings.channels.size() <= 32);
    CHECK(rings.bytes_per_second <= bound.ring * (1 + 1e-9));
    const auto found = check_channels(machine.topology, machine.gpus(), rings.channels);
    CHECK((found.empty() ? "" : found.front().place + ": " + found.front().message) == "");
  });
}
