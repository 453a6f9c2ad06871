// SPDX-License-Identifier: Apache-2.0
#include "topology/path.h"

#include "support/catch.h"
#include "topology/machines.h"
#include "topology/normalise.h"
#include "topology/raw_machines.h"

namespace khoro {
namespace {

using test::two_sockets;

PathKind kind_between(const Topology& machine, const char* from, const char* to) {
  return best_path(machine, machine.find(from), machine.find(to)).kind;
}

TEST_CASE("paths over PCIe are named by what they pass", "[topology]") {
  const Topology machine = normalise(two_sockets()).topology;
  CHECK(kind_between(machine, "gpu0", "gpu0") == PathKind::self);
  CHECK(kind_between(machine, "gpu0", "gpu1") == PathKind::one_hop);
  CHECK(kind_between(machine, "gpu0", "gpu2") == PathKind::sockets);
  CHECK(kind_between(machine, "gpu0", "cpu0") == PathKind::cpu);
  const Path path = best_path(machine, machine.find("gpu1"), machine.find("gpu2"));
  CHECK(path.links.size() == 5);
  CHECK(path.bytes_per_second == 10e9);
  CHECK(path.latency_seconds == Approx(4 * 0.25e-6 + 0.2e-6));
}

TEST_CASE("a direct link goes before PCIe, and two of them before a CPU", "[topology]") {
  Topology raw = two_sockets();
  raw.connect(2, 3, {.kind = LinkKind::nvlink, .count = 2});
  raw.connect(3, 6, {.kind = LinkKind::nvlink, .count = 1});
  const Topology machine = normalise(raw).topology;
  CHECK(kind_between(machine, "gpu0", "gpu1") == PathKind::direct);
  CHECK(kind_between(machine, "gpu0", "gpu2") == PathKind::relayed);
  CHECK(kind_between(machine, "gpu0", "gpu3") == PathKind::sockets);
  const Path relayed = best_path(machine, machine.find("gpu0"), machine.find("gpu2"));
  CHECK(relayed.links.size() == 2);
  CHECK(relayed.bytes_per_second == 20e9);
  CHECK(host_path(machine, machine.find("gpu0"), machine.find("gpu1")).kind == PathKind::one_hop);
}

TEST_CASE("GPUs on a fabric reach each other directly", "[topology]") {
  Topology raw = two_sockets();
  const int fabric = raw.add({SiteKind::fabric, "fabric", 0, {{"busid", "0000:c0:00.0"}}});
  for (const int gpu : {2, 3, 6, 7})
    raw.connect(gpu, fabric, {.kind = LinkKind::nvlink, .count = 6});
  const Topology machine = normalise(raw).topology;
  CHECK(kind_between(machine, "gpu0", "gpu3") == PathKind::direct);
}

TEST_CASE("sites that nothing joins do not reach each other", "[topology]") {
  Topology machine;
  machine.add(test::cpu_site(0));
  machine.add(test::gpu_site(0, "0000:01:00.0"));
  const Path path = best_path(machine, 0, 1);
  CHECK(path.kind == PathKind::none);
  CHECK(path.links.empty());
}

TEST_CASE("paths that are equally good leave by ports of their own", "[topology]") {
  const test::Machine machine = test::several_machines(2);
  const std::vector<int> gpus = machine.gpus();
  // A bridge has two NICs for its two GPUs.
  const std::vector<Path> paths = equal_paths(machine.topology, gpus[0], gpus[4]);
  REQUIRE(paths.size() == 2);
  CHECK(paths[0].links != paths[1].links);
  CHECK(paths[0].bytes_per_second == paths[1].bytes_per_second);
  CHECK(equal_paths(machine.topology, gpus[0], gpus[1]).size() == 1);
  CHECK(equal_paths(machine.topology, gpus[0], gpus[0]).size() == 1);
}

}  // namespace
}  // namespace khoro
