// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "topology/topology.h"

namespace khoro::test {

inline constexpr double gb = 1e9;

/// Topologies made by hand, normalised: all rates are known. Sites are named by kind and number.
class Machine {
 public:
  Topology topology;

  int add(SiteKind kind, int machine = 0) {
    const auto count = static_cast<int>(topology.sites_of(kind).size());
    return topology.add({kind, std::string(name(kind)) + std::to_string(count), machine, {}});
  }
  std::vector<int> add_gpus(int count, int machine = 0) {
    std::vector<int> gpus;
    for (int i = 0; i < count; ++i) gpus.push_back(add(SiteKind::gpu, machine));
    topology.place.insert(topology.place.end(), gpus.begin(), gpus.end());
    return gpus;
  }
  void join(int one, int other, LinkKind kind, double gigabytes, int count = 1) {
    topology.connect(one, other, {0, 0, kind, count, gigabytes * gb, 0});
  }
  std::vector<int> gpus() const { return topology.sites_of(SiteKind::gpu); }
};

/// GPUs on one fabric, 18 links of 20.6 GB/s each, and on two sockets.
inline Machine one_switch(int gpus, double gigabytes = 370.8) {
  Machine machine;
  const int fabric = machine.add(SiteKind::fabric);
  const int one = machine.add(SiteKind::cpu), other = machine.add(SiteKind::cpu);
  machine.join(one, other, LinkKind::socket, 40);
  for (int gpu : machine.add_gpus(gpus)) {
    machine.join(gpu, fabric, LinkKind::nvlink, gigabytes, 18);
    machine.join(gpu, machine.gpus().size() % 2 ? one : other, LinkKind::pci, 48);
  }
  return machine;
}

/// Every pair of GPUs joined by a link.
inline Machine full_mesh(int gpus, double gigabytes = 48) {
  Machine machine;
  machine.add_gpus(gpus);
  for (int one = 0; one < gpus; ++one)
    for (int other = one + 1; other < gpus; ++other)
      machine.join(one, other, LinkKind::xgmi, gigabytes);
  return machine;
}

/// `gpus` on a bridge of each of two sockets.
inline Machine two_sockets(int gpus, double pci = 24, double socket = 10) {
  Machine machine;
  const int cpus[] = {machine.add(SiteKind::cpu), machine.add(SiteKind::cpu)};
  machine.join(cpus[0], cpus[1], LinkKind::socket, socket);
  for (int cpu : cpus) {
    const int bridge = machine.add(SiteKind::bridge);
    machine.join(bridge, cpu, LinkKind::pci, pci);
    for (int gpu : machine.add_gpus(gpus)) machine.join(gpu, bridge, LinkKind::pci, pci);
  }
  return machine;
}

/// Eight GPUs as in the DGX-1: two quads in full mesh, and a cube, with links of 20 GB/s of which
/// each GPU has six; a PCIe switch for each two.
inline Machine hybrid_cube_mesh() {
  Machine machine;
  machine.add_gpus(8);
  const std::initializer_list<std::pair<std::pair<int, int>, int>> links = {
      {{0, 1}, 1}, {{0, 2}, 1}, {{0, 3}, 2}, {{0, 4}, 2}, {{1, 2}, 2}, {{1, 3}, 1},
      {{1, 5}, 2}, {{2, 3}, 1}, {{2, 6}, 2}, {{3, 7}, 2}, {{4, 5}, 1}, {{4, 6}, 1},
      {{4, 7}, 2}, {{5, 6}, 2}, {{5, 7}, 1}, {{6, 7}, 1}};
  for (const auto& [pair, count] : links)
    machine.join(pair.first, pair.second, LinkKind::nvlink, 20 * count, count);
  const int cpus[] = {machine.add(SiteKind::cpu), machine.add(SiteKind::cpu)};
  machine.join(cpus[0], cpus[1], LinkKind::socket, 6);
  for (int i = 0; i < 4; ++i) {
    const int bridge = machine.add(SiteKind::bridge);
    machine.join(bridge, cpus[i / 2], LinkKind::pci, 12);
    for (int gpu : {2 * i, 2 * i + 1}) machine.join(gpu, bridge, LinkKind::pci, 12);
  }
  return machine;
}

/// Two pairs of GPUs, each GPU on a CPU of its own.
inline Machine two_pairs() {
  Machine machine;
  machine.add_gpus(4);
  machine.join(0, 1, LinkKind::nvlink, 240, 12);
  machine.join(2, 3, LinkKind::nvlink, 240, 12);
  for (int i = 0; i < 4; ++i) machine.join(i, machine.add(SiteKind::cpu), LinkKind::pci, 12);
  for (int i = 0; i < 4; ++i)
    for (int j = i + 1; j < 4; ++j) machine.join(4 + i, 4 + j, LinkKind::socket, 16);
  return machine;
}

/// Machines of four GPUs on a fabric and two bridges, each with two NICs of `port` GB/s; their
/// ports lead to one network.
inline Machine several_machines(int machines, double port = 25) {
  Machine all;
  std::vector<int> ports;
  for (int machine = 0; machine < machines; ++machine) {
    const int fabric = all.add(SiteKind::fabric, machine), cpu = all.add(SiteKind::cpu, machine);
    const std::vector<int> gpus = all.add_gpus(4, machine);
    for (int gpu : gpus) all.join(gpu, fabric, LinkKind::nvlink, 200, 4);
    for (std::size_t i = 0; i < 2; ++i) {
      const int bridge = all.add(SiteKind::bridge, machine);
      all.join(bridge, cpu, LinkKind::pci, 24);
      for (std::size_t j = 0; j < 2; ++j) {
        all.join(gpus[2 * i + j], bridge, LinkKind::pci, 48);
        const int nic = all.add(SiteKind::nic, machine);
        all.join(nic, bridge, LinkKind::pci, 48);
        ports.push_back(all.add(SiteKind::port, machine));
        all.join(nic, ports.back(), LinkKind::port, port);
      }
    }
  }
  const int network = all.add(SiteKind::network);
  for (int end : ports) all.join(end, network, LinkKind::network, port);
  return all;
}

/// GPUs and relays joined at random, connected or not. Small whole rates make for ties.
inline Machine random_machine(std::uint64_t seed, int gpus, int relays) {
  std::mt19937_64 random(seed);
  Machine machine;
  machine.add_gpus(gpus);
  for (int i = 0; i < relays; ++i) machine.add(SiteKind::bridge);
  for (int one = 0; one < gpus + relays; ++one)
    for (int other = one + 1; other < gpus + relays; ++other)
      if (random() % 2) {
        const bool direct = other < gpus;
        machine.join(one, other, direct ? LinkKind::nvlink : LinkKind::pci,
                     static_cast<double>(1 + random() % 6));
      }
  return machine;
}

/// The same machine with sites and links in another order.
inline Topology shuffled(const Topology& topology, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int> order(topology.sites.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), random);
  Topology other = topology.arranged(order);
  std::shuffle(other.links.begin(), other.links.end(), random);
  return other;
}

}  // namespace khoro::test
