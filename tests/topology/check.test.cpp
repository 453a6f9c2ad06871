// SPDX-License-Identifier: Apache-2.0
#include "topology/check.h"

#include <functional>
#include <limits>

#include "support/catch.h"
#include "topology/machines.h"
#include "topology/search.h"

using namespace khoro;
using namespace khoro::test;

namespace {

/// What the check says of an answer after `change` to its channels.
std::string verdict(const Machine& machine,
                    const std::function<void(std::vector<Channel>&)>& change,
                    LinkChoice links = LinkChoice::all) {
  std::vector<Channel> channels = search_channels(machine.topology, machine.gpus(), links).channels;
  change(channels);
  std::string all;
  for (const Diagnostic& found : check_channels(machine.topology, machine.gpus(), channels))
    all += found.place + ": " + found.message + "\n";
  return all;
}

}  // namespace

TEST_CASE("answers as they are pass the check", "[topology]") {
  const auto nothing = [](std::vector<Channel>&) {};
  CHECK(verdict(one_switch(8), nothing).empty());
  CHECK(verdict(full_mesh(8), nothing).empty());
  CHECK(verdict(two_sockets(4), nothing).empty());
  CHECK(verdict(hybrid_cube_mesh(), nothing).empty());
}

TEST_CASE("a ring at more than the rate of its links is found, with all of these", "[topology]") {
  using Channels = std::vector<Channel>;
  const Machine machine = full_mesh(5);
  CHECK(verdict(machine, [](Channels& all) { all[0].bytes_per_second *= 1.00001; }) ==
        "link 4 from gpu0 to gpu3: carries 4.80005e+10 bytes/s of 4.8e+10\n"
        "link 7 from gpu4 to gpu0: carries 4.80005e+10 bytes/s of 4.8e+10\n"
        "link 8 from gpu1 to gpu2: carries 4.80005e+10 bytes/s of 4.8e+10\n"
        "link 11 from gpu3 to gpu1: carries 4.80005e+10 bytes/s of 4.8e+10\n"
        "link 16 from gpu2 to gpu4: carries 4.80005e+10 bytes/s of 4.8e+10\n");
}

TEST_CASE("a ring that leaves a GPU out, or passes one twice, is found", "[topology]") {
  const Machine machine = one_switch(4);
  const auto direct = [&](const std::function<void(std::vector<Channel>&)>& change) {
    return verdict(machine, change, LinkChoice::direct);
  };
  CHECK_THAT(direct([](auto& all) { all[0].hops.pop_back(); }), Catch::Contains("is left out"));
  CHECK_THAT(direct([](auto& all) { std::swap(all[0].hops[1], all[0].hops[2]); }),
             Catch::Contains("channel 0: after gpu0 comes gpu1, not gpu2"));
  CHECK_THAT(direct([](auto& all) { all[0].hops.push_back(all[0].hops[0]); }),
             Catch::Contains("gpu0 comes twice"));
  CHECK_THAT(direct([](auto& all) { all[2].hops.clear(); }), Catch::Contains("channel 2: gpu3"));
  CHECK_THAT(direct([](auto& all) { all[0].root = all[0].hops[1].from; }),
             Catch::Contains("does not begin with its root gpu1"));
}

TEST_CASE("a route that is broken, or passes what does not relay, is found", "[topology]") {
  const Machine machine = one_switch(4);
  const auto direct = [&](const std::function<void(std::vector<Channel>&)>& change) {
    return verdict(machine, change, LinkChoice::direct);
  };
  CHECK_THAT(direct([](auto& all) { all[0].hops[0].route.pop_back(); }),
             Catch::Contains("hop 0: the route ends at fabric0, not gpu1"));
  CHECK_THAT(direct([](auto& all) { all[0].hops[0].route.clear(); }),
             Catch::Contains("the route ends at gpu0"));
  CHECK_THAT(direct([](auto& all) { std::swap(all[0].hops[0].route[0], all[0].hops[0].route[1]); }),
             Catch::Contains("leaves fabric0, not gpu0"));
  CHECK_THAT(direct([](auto& all) { all[0].hops[0].route[0] = 4711; }),
             Catch::Contains("there is no link 4711"));
  CHECK_THAT(direct([](auto& all) { all[0].hops[0].to = 0; }), Catch::Contains("none of the GPUs"));
  const Machine mesh = full_mesh(3);
  CHECK_THAT(verdict(mesh,
                     [&](auto& all) {
                       Hop& hop = all[0].hops[0];  // from gpu0, by way of the third GPU
                       hop.route.clear();
                       for (const auto& [from, to] : {std::pair(hop.from, 3 - hop.from - hop.to),
                                                      std::pair(3 - hop.from - hop.to, hop.to)})
                         for (int i = 0; i < 6; ++i)
                           if (mesh.topology.links[static_cast<std::size_t>(i)].from == from &&
                               mesh.topology.links[static_cast<std::size_t>(i)].to == to)
                             hop.route.push_back(i);
                     }),
             Catch::Contains("does not relay"));
}

TEST_CASE("faults of trees are found", "[topology]") {
  const Machine machine = two_sockets(2);
  const auto last_hop = [](auto& all) -> Hop& { return all[0].hops.back(); };
  CHECK_THAT(verdict(machine, [](auto& all) { all[0].hops.pop_back(); }),
             Catch::Contains("is not reached"));
  CHECK_THAT(verdict(machine, [](auto& all) { all.pop_back(); }), Catch::Contains("trees from it"));
  CHECK_THAT(verdict(machine, [&](auto& all) { all[0].hops.push_back(last_hop(all)); }),
             Catch::Contains("is reached twice"));
  CHECK_THAT(
      verdict(machine, [](auto& all) { std::swap(all[0].hops.front(), all[0].hops.back()); }),
      Catch::Contains("sends before anything reaches it"));
  CHECK_THAT(verdict(machine, [](auto& all) { all[1].bytes_per_second *= 0.9; }),
             Catch::Contains("trees from it carry"));
}

TEST_CASE("a rate that is no rate is found", "[topology]") {
  const Machine machine = one_switch(2);
  for (double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::quiet_NaN()})
    CHECK_THAT(verdict(machine, [&](auto& all) { all[0].bytes_per_second = rate; }),
               Catch::Contains("its rate is"));
}

TEST_CASE("bus bandwidth counts of trees what goes over links", "[topology]") {
  std::vector<Channel> channels(3);
  channels[0].bytes_per_second = 10;
  for (std::size_t i : {1U, 2U}) {
    channels[i].kind = ChannelKind::tree;
    channels[i].bytes_per_second = 8;
  }
  CHECK(bus_bandwidth(channels, 4) == 10 + 16 * 3 / 4);
}
