// SPDX-License-Identifier: Apache-2.0
#include "topology/search.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "base/error.h"
#include "support/seeds.h"
#include "topology/answers.h"
#include "topology/check.h"
#include "topology/machines.h"
#include "topology/search/rings.h"

using namespace khoro;
using namespace khoro::test;

namespace {

Answers search(const Machine& machine) { return search_channels(machine.topology, machine.gpus()); }

/// Eight GPUs on a fabric, the second of which has lost all of its links but `left` of 18; each two
/// are coupled to a CPU.
Machine with_weak_gpu(int left) {
  Machine machine;
  const int fabric = machine.add(SiteKind::fabric);
  std::vector<int> cpus;
  for (int i = 0; i < 4; ++i) cpus.push_back(machine.add(SiteKind::cpu));
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = i + 1; j < 4; ++j) machine.join(cpus[i], cpus[j], LinkKind::socket, 6);
  for (int gpu : machine.add_gpus(8)) {
    const int index = static_cast<int>(gpu - machine.gpus().front());
    machine.join(gpu, cpus[static_cast<std::size_t>(index / 2)], LinkKind::c2c, 223.5, 5);
    const int links = index == 1 ? left : 18;
    if (links > 0) machine.join(gpu, fabric, LinkKind::nvlink, 40.1 * links, links);
  }
  return machine;
}

}  // namespace

TEST_CASE("symmetric machines have closed forms that reach the bound", "[topology]") {
  for (int gpus : {3, 8, 16, 72}) {
    const Machine machine = one_switch(gpus);
    const Answer answer = search(machine).whole;
    CHECK(answer.method == Method::switches);
    CHECK(answer.channels.size() == 18);
    CHECK(answer.ratio() == Approx(1));
    CHECK(complaints(machine.topology, answer).empty());
  }
  for (int gpus : {2, 3, 5, 8, 9, 12, 16}) {
    const Machine machine = full_mesh(gpus);
    const Answer answer = search(machine).whole;
    CHECK(answer.method == Method::mesh);
    CHECK(answer.ratio() == Approx(1));
    CHECK(complaints(machine.topology, answer).empty());
  }
}

TEST_CASE("full meshes without a closed form reach the bound too", "[topology]") {
  for (int gpus : {4, 6}) {
    const Machine machine = full_mesh(gpus);
    const Answer answer = search(machine).whole;
    CHECK(answer.method == Method::rings);
    CHECK(answer.ratio() > 0.99);
    CHECK(complaints(machine.topology, answer).empty());
  }
}

TEST_CASE("several switches are used side by side", "[topology]") {
  Machine machine;
  const std::vector<int> gpus = machine.add_gpus(8);
  for (int i = 0; i < 4; ++i) {
    const int fabric = machine.add(SiteKind::fabric);
    for (int gpu : gpus)
      machine.join(gpu, fabric, LinkKind::nvlink, i < 2 ? 100 : 80, i < 2 ? 5 : 4);
  }
  const Answer answer = search(machine).whole;
  CHECK(answer.method == Method::switches);
  CHECK(answer.channels.size() == 18);
  CHECK(answer.bus == Approx(360 * gb));
  CHECK(complaints(machine.topology, answer).empty());
}

TEST_CASE("rings fill a hybrid cube mesh, trees what rings cannot", "[topology]") {
  const Machine cube = hybrid_cube_mesh();
  CHECK(search(cube).whole.method == Method::rings);
  CHECK(search(cube).whole.bus == Approx(120 * gb));
  for (const Machine& machine : {two_sockets(4), two_pairs(), two_sockets(8)}) {
    const Answer answer = search(machine).whole;
    CHECK(answer.links == LinkChoice::all);
    CHECK(answer.method == Method::trees);
    CHECK(answer.ratio() > 0.98);
    CHECK(complaints(machine.topology, answer).empty());
  }
}

TEST_CASE("all subsets of a hybrid cube mesh come near their bound", "[topology]") {
  const Machine machine = hybrid_cube_mesh();
  double sum = 0, worst = 1;
  int count = 0;
  for (unsigned set = 0; set < 256; ++set) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu)
      if (set >> gpu & 1) gpus.push_back(gpu);
    if (gpus.size() < 2) continue;
    INFO("set " << set);
    const Answer answer = search_channels(machine.topology, gpus).whole;
    CHECK(complaints(machine.topology, answer) == "");
    sum += answer.ratio();
    worst = std::min(worst, answer.ratio());
    ++count;
  }
  CHECK(count == 247);
  WARN("mean ratio of 247 subsets " << sum / count << ", worst " << worst);
  CHECK(sum / count >= 0.95);
  CHECK(worst >= 0.9);
}

TEST_CASE("islands of direct links have answers of their own", "[topology]") {
  const Machine machine = two_pairs();
  const Answers answers = search(machine);
  CHECK(answers.whole.bound.bus == Approx(36 * gb));
  REQUIRE(answers.islands.size() == 2);
  CHECK(answers.islands[0].gpus == std::vector{0, 1});
  CHECK(answers.islands[1].gpus == std::vector{2, 3});
  for (const Answer& island : answers.islands) {
    CHECK(island.links == LinkChoice::direct);
    CHECK(island.bus == Approx(240 * gb));
  }
  CHECK(search(hybrid_cube_mesh()).islands.empty());
}

TEST_CASE("a GPU that lost its links keeps the others from nothing", "[topology]") {
  for (int left : {0, 1, 4}) {
    INFO(left << " links left");
    const Machine machine = with_weak_gpu(left);
    const Answers answers = search(machine);
    CHECK(answers.whole.links == LinkChoice::all);
    CHECK(answers.whole.ratio() > 0.95);
    CHECK(complaints(machine.topology, answers.whole) == "");
    REQUIRE(answers.islands.size() == 1);
    CHECK(answers.islands[0].gpus.size() == 7);
    CHECK(answers.islands[0].bus == Approx(721.8 * gb));
    CHECK(complaints(machine.topology, answers.islands[0]) == "");
    const std::vector<int>& island = answers.islands[0].gpus;
    CHECK(std::count(island.begin(), island.end(), machine.gpus()[1]) == 0);
  }
  CHECK(search(with_weak_gpu(18)).islands.empty());
}

TEST_CASE("an answer names the links that it fills", "[topology]") {
  const Machine machine = two_sockets(4);
  const Answer answer = search(machine).whole;
  const auto kind = [&](int link) {
    return machine.topology.links[static_cast<std::size_t>(link)].kind;
  };
  REQUIRE(answer.full.size() == 2);
  CHECK(kind(answer.full[0]) == LinkKind::socket);
  CHECK(kind(answer.full[1]) == LinkKind::socket);
}

TEST_CASE("nothing is asked of no GPU and of one", "[topology]") {
  const Machine machine = one_switch(2);
  for (std::size_t count : {0U, 1U}) {
    const std::vector<int> gpus(count, machine.gpus().front());
    const Answers answers = search_channels(machine.topology, gpus);
    CHECK(answers.whole.method == Method::none);
    CHECK(answers.whole.channels.empty());
    CHECK(answers.whole.ratio() == 1);
    CHECK(answers.islands.empty());
  }
}

TEST_CASE("GPUs that nothing joins have an answer that says so", "[topology]") {
  Machine machine;
  machine.add_gpus(3);
  const Answers answers = search(machine);
  CHECK(answers.whole.method == Method::none);
  CHECK(answers.whole.bus == 0);
  CHECK(answers.whole.bound.bus == 0);
}

TEST_CASE("sites that are no GPUs, and GPUs that come twice, are refused", "[topology]") {
  const Machine machine = one_switch(2);
  const int gpu = machine.gpus().front();
  for (const std::vector<int>& wrong :
       {std::vector{gpu, 0}, std::vector{gpu, -1}, std::vector{gpu, 99}, std::vector{gpu, gpu}})
    CHECK_THROWS_AS(search_channels(machine.topology, wrong), Error);
}

TEST_CASE("the order of sites and links changes nothing", "[topology]") {
  for (const Machine& machine :
       {one_switch(8), full_mesh(6), full_mesh(8), hybrid_cube_mesh(), two_sockets(4), two_pairs(),
        with_weak_gpu(0), with_weak_gpu(3), several_machines(3)}) {
    const std::string expected = text_of(machine.topology);
    for_each_seed(8, [&](std::uint64_t seed) {
      CHECK(text_of(shuffled(machine.topology, seed)) == expected);
    });
  }
  for_each_seed(30, [](std::uint64_t seed) {
    const Machine machine = random_machine(seed, 6, 3);
    CHECK(text_of(shuffled(machine.topology, seed)) == text_of(machine.topology));
  });
}

TEST_CASE("rings of several machines leave each by a port, and enter by one of the same rail",
          "[topology]") {
  for (int machines : {2, 3, 4}) {
    INFO(machines << " machines");
    const Machine all = several_machines(machines);
    const Graph graph = graph_of(all.topology, all.gpus(), LinkChoice::all);
    const Bound bound = bound_of(graph);
    CHECK(bound.ring == Approx(100 * gb));  // four ports
    const Rings rings = pack_rings(graph, bound.ring, most_rings);
    CHECK(rings.bytes_per_second > 0.95 * bound.ring);
    CHECK(check_channels(all.topology, all.gpus(), rings.channels).empty());
    const std::vector<int> ports = all.topology.sites_of(SiteKind::port);
    const auto rail = [&](int port) {
      return (std::find(ports.begin(), ports.end(), port) - ports.begin()) % 4;
    };
    for (const Channel& ring : rings.channels) {
      std::set<int> entered;
      for (const Crossing& crossing : crossings_of(all.topology, ring)) {
        const Hop& hop = ring.hops[static_cast<std::size_t>(crossing.hop)];
        CHECK(all.topology.site(crossing.exit).machine == all.topology.site(hop.from).machine);
        CHECK(all.topology.site(crossing.entry).machine == all.topology.site(hop.to).machine);
        CHECK(rail(crossing.exit) == rail(crossing.entry));
        entered.insert(all.topology.site(crossing.entry).machine);
      }
      CHECK(entered.size() == static_cast<std::size_t>(machines));
    }
  }
}

TEST_CASE("a port's rail is what it is said to be, not where it comes", "[topology]") {
  Machine all = several_machines(2);
  const std::vector<int> ports = all.topology.sites_of(SiteKind::port);
  for (std::size_t i = 0; i < 8; ++i)  // the other way around on the second machine
    all.topology.sites[static_cast<std::size_t>(ports[i])].facts["rail"] =
        std::to_string(i < 4 ? i : 7 - i);
  const Answer answer = search(all).whole;
  CHECK(complaints(all.topology, answer) == "");
  int crossings = 0;
  for (const Channel& channel : answer.channels)
    for (const Crossing& crossing : crossings_of(all.topology, channel)) {
      CHECK(all.topology.site(crossing.exit).fact("rail") ==
            all.topology.site(crossing.entry).fact("rail"));
      ++crossings;
    }
  CHECK(crossings > 0);
}

TEST_CASE("several machines have an answer near the bound, and one for each", "[topology]") {
  for (int machines : {2, 3, 5}) {
    const Machine all = several_machines(machines);
    const Answers answers = search(all);
    CHECK(answers.whole.ratio() > 0.95);
    CHECK(complaints(all.topology, answers.whole) == "");
    CHECK(answers.islands.size() == static_cast<std::size_t>(machines));
    for (const Answer& island : answers.islands) CHECK(island.bus == Approx(200 * gb));
  }
}

TEST_CASE("machines at random have answers that pass the check", "[topology]") {
  double sum = 0;
  int count = 0;
  for_each_seed(100, [&](std::uint64_t seed) {
    const Machine machine =
        random_machine(seed, 2 + static_cast<int>(seed % 9), static_cast<int>(seed % 5));
    const Answer answer = search_channels(machine.topology, machine.gpus(), LinkChoice::all);
    CHECK(complaints(machine.topology, answer) == "");
    CHECK((answer.bound.bus > 0) == !answer.channels.empty());
    sum += answer.ratio();
    ++count;
  });
  CHECK(sum / count > 0.95);
}

TEST_CASE("16 GPUs take milliseconds, 72 not much longer", "[topology]") {
  const auto milliseconds = [](const Machine& machine) {
    const auto begin = std::chrono::steady_clock::now();
    const Answers answers = search(machine);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    CHECK(answers.whole.bus > 0);
    return taken.count();
  };
  double most_of_16 = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    most_of_16 = std::max(most_of_16, milliseconds(random_machine(seed, 16, 4)));
  WARN("two sockets of 8: " << milliseconds(two_sockets(8)) << " ms; 16 GPUs at random: "
                            << most_of_16 << " ms; 72 on a switch: " << milliseconds(one_switch(72))
                            << " ms; 72 at random: " << milliseconds(random_machine(1, 72, 9))
                            << " ms");
}
