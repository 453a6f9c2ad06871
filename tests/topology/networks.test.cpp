// SPDX-License-Identifier: Apache-2.0
// Answers over networks: trees of tiers.
#include "topology/networks.h"

#include <map>
#include <string>

#include "support/catch.h"
#include "support/seeds.h"
#include "topology/answers.h"
#include "topology/bound.h"
#include "topology/search/tiers.h"

using namespace khoro;
using namespace khoro::test;

namespace {

Answer answer_of(const Machine& machine) {
  Answer answer = search_channels(machine.topology, machine.gpus()).whole;
  CHECK(complaints(machine.topology, answer) == "");
  return answer;
}

}  // namespace

TEST_CASE("machines that are built alike come near their bound, however many they are",
          "[topology]") {
  const Machine cube = hybrid_cube_mesh(), mesh = full_mesh(8), pci = two_sockets(4, 24, 22);
  for (int machines : {2, 3, 4, 8, 17, 32}) {
    const std::map<std::string, Machine> kinds = {
        {"eight GPUs on a switch, eight NICs", hgx_machines(machines)},
        {"a hybrid cube mesh, four NICs",
         copies(machines, cube, cube.topology.sites_of(SiteKind::bridge), 12.5)},
        {"a full mesh, eight NICs", copies(machines, mesh, mesh.gpus(), 50)},
        {"two sockets, a NIC",
         copies(machines, pci, {pci.topology.sites_of(SiteKind::bridge)[0]}, 12.5)},
        {"two sockets, two NICs",
         copies(machines, pci, pci.topology.sites_of(SiteKind::bridge), 12.5)},
        {"two NICs for each two GPUs", several_machines(machines)}};
    for (const auto& [name, machine] : kinds) {
      INFO(machines << " times " << name);
      const Answer answer = answer_of(machine);
      CHECK(answer.ratio() >= 0.98);
    }
  }
}

TEST_CASE("a thousand GPUs are no more trouble than a hundred", "[topology]") {
  const Machine machine = hgx_machines(128);
  const Answer answer = answer_of(machine);
  CHECK(answer.method == Method::tiers);
  CHECK(answer.channels.size() == 1024);
  CHECK(answer.ratio() > 0.999);
}

TEST_CASE("where trees would be too many each GPU has one", "[topology]") {
  const Machine cube = hybrid_cube_mesh();
  const Machine machine = copies(128, cube, cube.topology.sites_of(SiteKind::bridge), 12.5);
  const Answer answer = search_channels(machine.topology, machine.gpus()).whole;
  CHECK(answer.method == Method::tiers);
  CHECK(answer.ratio() > 0.5);
}

TEST_CASE("a bridge that only leads to GPUs is no door of a machine", "[topology]") {
  Cluster cluster;
  for (int i = 0; i < 4; ++i) {
    cluster.add_hgx();
    const int useless = cluster.all.add(SiteKind::bridge, i);
    const int gpu = cluster.all.topology.sites_of(SiteKind::gpu).back();
    cluster.all.topology.links.push_back({useless, gpu, LinkKind::pci, 1, 48e9});
  }
  const Answer answer = answer_of(cluster.joined());
  CHECK(answer.method == Method::tiers);
  CHECK(answer.ratio() >= 0.98);
}

TEST_CASE("data enters each machine once, over one rail", "[topology]") {
  const Machine machine = hgx_machines(5);
  const Topology& topology = machine.topology;
  for (const Channel& channel : answer_of(machine).channels) {
    std::map<int, int> entered;
    for (const Crossing& crossing : crossings_of(topology, channel)) {
      CHECK(topology.site(crossing.exit).fact("rail") ==
            topology.site(crossing.entry).fact("rail"));
      ++entered[topology.site(crossing.entry).machine];
    }
    entered[topology.site(channel.root).machine] += 1;
    CHECK(entered.size() == 5);
    for (const auto& [number, times] : entered) CHECK(times == 1);
  }
}

TEST_CASE("machines that lack NICs keep others back no more than they must", "[topology]") {
  const std::vector<std::vector<std::vector<int>>> missing = {
      {{}, {3}}, {{0}, {}, {1}, {}}, {{0, 1, 2, 3}, {}, {}, {}}, {{7}, {7}, {7}}};
  for (const auto& machines : missing) {
    Cluster cluster;
    for (const std::vector<int>& nics : machines) cluster.add_hgx(nics);
    CHECK(answer_of(cluster.joined()).ratio() >= 0.98);
  }
}

TEST_CASE("an order of machines is found in which neighbours have rails in common", "[topology]") {
  // The first two have no rail in common, so they must not be neighbours.
  Cluster cluster;
  for (const std::vector<int>& missing :
       {std::vector{4, 5, 6, 7}, std::vector{0, 1, 2, 3}, std::vector<int>(), std::vector<int>()})
    cluster.add_hgx(missing);
  const Machine& machine = cluster.joined();
  const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
  const std::vector<Channel> channels = trees_over_networks(graph);
  CHECK(check_channels(machine.topology, machine.gpus(), channels).empty());
  CHECK(!channels.empty());
  CHECK(answer_of(machine).method == Method::tiers);
  CHECK(answer_of(machine).ratio() >= 0.98);
}

TEST_CASE("a port that is faster than the link of its nearest GPU is used in full", "[topology]") {
  Machine one;
  const int cpu = one.add(SiteKind::cpu), bridge = one.add(SiteKind::bridge);
  const std::vector<int> gpus = one.add_gpus(2);
  one.join(gpus[0], gpus[1], LinkKind::nvlink, 240);
  one.join(cpu, bridge, LinkKind::pci, 12);
  one.join(gpus[0], cpu, LinkKind::pci, 12);
  one.join(gpus[1], bridge, LinkKind::pci, 12);
  const Answer answer = answer_of(copies(40, one, {cpu}, 20));
  CHECK(answer.method == Method::tiers);
  CHECK(answer.ratio() >= 0.98);
}

TEST_CASE("machines of several sizes share what they can", "[topology]") {
  Cluster cluster;
  for (int gpus : {8, 4, 8, 4}) cluster.add_hgx({}, gpus);
  const Answer mixed = answer_of(cluster.joined());
  CHECK(mixed.ratio() >= 0.98);
  Cluster single;
  single.add_hgx();
  single.add_hgx({}, 1);
  CHECK(answer_of(single.joined()).ratio() >= 0.9);
}

TEST_CASE("machines with a fabric in common are one to a network", "[topology]") {
  Cluster cluster;
  for (int rack = 0; rack < 3; ++rack) {
    Machine one;
    const int fabric = one.add(SiteKind::fabric);
    for (int tray = 0; tray < 18; ++tray) {
      const int cpu = one.add(SiteKind::cpu);
      for (int gpu : one.add_gpus(4)) {
        one.join(gpu, fabric, LinkKind::nvlink, 721.8, 18);
        one.join(gpu, cpu, LinkKind::c2c, 223.5, 5);
      }
    }
    const std::vector<int> cpus = one.topology.sites_of(SiteKind::cpu);
    cluster.add_copy(one, cpus, 25);
  }
  const Machine& machine = cluster.joined();
  const Answer answer = answer_of(machine);
  CHECK(answer.method == Method::tiers);
  CHECK(answer.gpus.size() == 216);
  CHECK(answer.ratio() >= 0.98);
}

TEST_CASE("parts that are built alike have the bound that all together have", "[topology]") {
  for (const Machine& machine : {hgx_machines(4), several_machines(3)}) {
    Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
    REQUIRE(graph.parts() > 2);
    const Bound bound = bound_of(graph);
    graph.part.assign(graph.part.size(), 0);  // nothing is alike in a single part
    const Bound whole = bound_of(graph);
    CHECK(bound.share == whole.share);
    CHECK(bound.ring == whole.ring);
  }
}

TEST_CASE("the order of sites changes nothing over networks", "[topology]") {
  Cluster cluster;
  cluster.add_hgx({2});
  cluster.add_hgx({}, 4);
  cluster.add_hgx();
  for (const Machine& machine : {hgx_machines(4), cluster.joined()}) {
    const std::string expected = text_of(machine.topology, answer_of(machine));
    for_each_seed(8, [&](std::uint64_t seed) {
      const Topology other = shuffled(machine.topology, seed);
      const Answer answer = search_channels(other, other.sites_of(SiteKind::gpu)).whole;
      CHECK(text_of(other, answer) == expected);
    });
  }
}

TEST_CASE("parts that no network joins to all have no trees of tiers", "[topology]") {
  Cluster cluster;
  cluster.add_hgx();
  cluster.add_hgx({0, 1, 2, 3, 4, 5, 6, 7});
  const Machine& machine = cluster.joined();
  const Graph graph = graph_of(machine.topology, machine.gpus(), LinkChoice::all);
  CHECK(trees_over_networks(graph).empty());
  CHECK(answer_of(machine).bound.bus == 0);
  const Graph one = graph_of(one_switch(4).topology, one_switch(4).gpus(), LinkChoice::all);
  CHECK(trees_over_networks(one).empty());
}
