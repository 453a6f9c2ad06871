// SPDX-License-Identifier: Apache-2.0
#include "topology/normalise.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "support/catch.h"
#include "topology/raw_machines.h"

namespace khoro {
namespace {

using test::bridge_site;
using test::cpu_site;
using test::gpu_site;
using test::link_between;
using test::two_sockets;

double rate(const Topology& topology, std::string_view from, std::string_view to, LinkKind kind) {
  const Link* const link = link_between(topology, from, to, kind);
  REQUIRE(link != nullptr);
  return link->bytes_per_second;
}

/// Messages of a severity, each after its place.
std::vector<std::string> told(const Normalised& normalised, Severity severity) {
  std::vector<std::string> told;
  for (const Diagnostic& diagnostic : normalised.diagnostics)
    if (diagnostic.severity == severity)
      told.push_back(diagnostic.place + ": " + diagnostic.message);
  return told;
}

/// What is made of a machine is the same in whatever order its sites and links come.
void check_any_order(const Topology& machine) {
  const Topology wanted = normalise(machine).topology;
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> order(machine.sites.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Topology shuffled = machine.arranged(order);
    std::shuffle(shuffled.links.begin(), shuffled.links.end(), random);
    CHECK(normalise(shuffled).topology == wanted);
  }
}

TEST_CASE("a plain machine gets rates, short names and nothing said", "[topology]") {
  const Normalised normalised = normalise(two_sockets());
  CHECK(normalised.diagnostics.empty());
  const Topology& machine = normalised.topology;
  CHECK(rate(machine, "gpu0", "bridge0", LinkKind::pci) == 24e9);
  CHECK(rate(machine, "bridge0", "cpu0", LinkKind::pci) == 24e9);
  CHECK(rate(machine, "cpu0", "cpu1", LinkKind::socket) == 10e9);
  CHECK(rate(machine, "cpu1", "cpu0", LinkKind::socket) == 10e9);
  CHECK(machine.ranks() == 4);
  CHECK(machine.site(machine.place[3]).name == "gpu3");
  CHECK(std::all_of(machine.links.begin(), machine.links.end(),
                    [](const Link& link) { return link.latency_seconds > 0; }));
}

TEST_CASE("what is normal stays as it is", "[topology]") {
  const Topology once = normalise(two_sockets()).topology;
  const Normalised twice = normalise(once);
  CHECK(twice.topology == once);
  CHECK(twice.diagnostics.empty());
}

TEST_CASE("the order of sites and links makes no difference", "[topology]") {
  Topology machine = two_sockets();
  machine.links.push_back({1 + 1, 3, LinkKind::nvlink, 2, 0, 0});
  machine.links.push_back({3, 1 + 1, LinkKind::nvlink, 2, 0, 0});
  check_any_order(machine);
}

TEST_CASE("sites of which all is known alike are told apart by what they are joined to",
          "[topology]") {
  Topology machine;
  const int cpu = machine.add(cpu_site(0));
  const auto add = [&](const Site& site, int above) {
    const int index = machine.add(site);
    machine.sites.back().name += fmt::format(" {}", index);
    machine.connect(index, above, {.kind = LinkKind::pci});
    return index;
  };
  for (const int dev : {1, 0}) {  // by devices two bridges away
    const int upper = add(bridge_site("0000:01:00.0"), cpu);
    const int lower = add(bridge_site("0000:02:00.0"), upper);
    add(gpu_site(dev, "0000:03:00.0"), lower);
  }
  for (int i = 0; i < 2; ++i) {  // by nothing: either may come first, with all below it
    const int upper = add(bridge_site("0000:04:00.0"), cpu);
    for (int j = 0; j < 2; ++j) add(gpu_site(2, "0000:05:00.0"), upper);
  }
  check_any_order(machine);
}

TEST_CASE("sites are told apart by what leads to them, too", "[topology]") {
  Topology machine;
  const int cpu = machine.add(cpu_site(0));
  const int one = machine.add(bridge_site("0000:04:00.0"));
  machine.sites.back().name += " one";
  const int other = machine.add(bridge_site("0000:04:00.0"));
  machine.sites.back().name += " other";
  const int gpu = machine.add(gpu_site(0, "0000:05:00.0"));
  for (const int bridge : {one, other}) machine.connect(bridge, cpu, {.kind = LinkKind::pci});
  machine.connect(gpu, cpu, {.kind = LinkKind::pci});
  machine.links.push_back({gpu, one, LinkKind::pci, 1, 0, 0});
  check_any_order(machine);
}

TEST_CASE("a fabric of several machines is part of the first of them", "[topology]") {
  for (const int first : {0, 1}) {
    Topology machine;
    const int fabric = machine.add({SiteKind::fabric, "fabric", first, {}});
    for (const int number : {0, 1}) {
      Site gpu = gpu_site(number, "0000:01:00.0");
      gpu.name += fmt::format(" {}", number);
      gpu.machine = number;
      gpu.facts["rank"] = std::to_string(number);
      machine.connect(machine.add(gpu), fabric, {.kind = LinkKind::nvlink});
    }
    const Topology normal = normalise(machine).topology;
    CHECK(normal.site(normal.sites_of(SiteKind::fabric).front()).machine == 0);
  }
}

TEST_CASE("a link of a GPU to itself is dropped once and told", "[topology]") {
  Topology machine = two_sockets();
  machine.connect(2, 2, {.kind = LinkKind::nvlink, .count = 12});
  const Normalised normalised = normalise(machine);
  const auto warnings = told(normalised, Severity::warning);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "gpu 0 at 0000:11:00.0: nvlink a link to itself; whom it reaches is not known: ignored");
  CHECK(normalised.topology == normalise(two_sockets()).topology);
}

TEST_CASE("of links that both ends count differently the lesser number is used", "[topology]") {
  Topology machine = two_sockets();
  machine.links.push_back({2, 3, LinkKind::nvlink, 12, 0, 0});
  machine.links.push_back({3, 2, LinkKind::nvlink, 8, 0, 0});
  const Normalised normalised = normalise(machine);
  CHECK(rate(normalised.topology, "gpu0", "gpu1", LinkKind::nvlink) == 160e9);
  CHECK(rate(normalised.topology, "gpu1", "gpu0", LinkKind::nvlink) == 160e9);
  REQUIRE(!told(normalised, Severity::warning).empty());
  CHECK(
      told(normalised, Severity::warning)[0] ==
      "gpu 0 at 0000:11:00.0: 12 nvlink links to gpu 1 at 0000:12:00.0, which tells of 8: 8 used");
}

TEST_CASE("a link that only one end tells of is not there", "[topology]") {
  Topology machine = two_sockets();
  machine.links.push_back({2, 3, LinkKind::nvlink, 12, 0, 0});
  const Normalised normalised = normalise(machine);
  CHECK(link_between(normalised.topology, "gpu0", "gpu1", LinkKind::nvlink) == nullptr);
  CHECK(told(normalised, Severity::warning).size() == 1);
}

TEST_CASE("switches that one GPU reaches are one fabric", "[topology]") {
  Topology machine = two_sockets();
  for (const char* bus_id : {"0000:c0:00.0", "0000:c1:00.0"}) {
    const int fabric = machine.add({SiteKind::fabric, bus_id, 0, {{"busid", bus_id}}});
    for (const int gpu : {2, 3, 6, 7})
      machine.connect(gpu, fabric, {.kind = LinkKind::nvlink, .count = 6});
  }
  const Normalised normalised = normalise(machine);
  CHECK(normalised.diagnostics.empty());
  CHECK(normalised.topology.sites_of(SiteKind::fabric).size() == 1);
  CHECK(rate(normalised.topology, "gpu3", "fabric0", LinkKind::nvlink) == 240e9);
}

TEST_CASE("a switch that one GPU alone names is taken for that of the others", "[topology]") {
  Topology machine = two_sockets();
  const int fabric = machine.add({SiteKind::fabric, "one", 0, {{"busid", "0000:c0:00.0"}}});
  const int stranger = machine.add({SiteKind::fabric, "other", 0, {{"busid", "0000:ee:00.0"}}});
  for (const int gpu : {2, 3, 6})
    machine.connect(gpu, fabric, {.kind = LinkKind::nvlink, .count = 12});
  machine.connect(7, stranger, {.kind = LinkKind::nvlink, .count = 12});
  const Normalised normalised = normalise(machine);
  CHECK(normalised.topology.sites_of(SiteKind::fabric).size() == 1);
  REQUIRE(told(normalised, Severity::warning).size() == 1);
  CHECK(told(normalised, Severity::warning)[0].starts_with(
      "gpu 3 at 0000:22:00.0: its NVLink switch"));
}

TEST_CASE("a GPU far below its peers is named", "[topology]") {
  Topology machine = two_sockets();
  const int fabric = machine.add({SiteKind::fabric, "one", 0, {{"busid", "0000:c0:00.0"}}});
  for (const int gpu : {2, 3, 6})
    machine.connect(gpu, fabric, {.kind = LinkKind::nvlink, .count = 12});
  const auto warnings = told(normalise(machine), Severity::warning);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "gpu 3 at 0000:22:00.0: 0.0 GB/s of direct links, its peers have 240.0");
}

TEST_CASE("a bridge far slower than what is below it is taken for as fast", "[topology]") {
  Topology machine = two_sockets();
  machine.sites[1] = bridge_site("0000:10:00.0", "2.5 GT/s PCIe", "1");
  const Normalised normalised = normalise(machine);
  CHECK(normalised.topology == normalise(two_sockets()).topology);
  REQUIRE(told(normalised, Severity::note).size() == 1);
  CHECK(told(normalised, Severity::note)[0] ==
        "bridge 0000:10:00.0: PCIe speed 2.5 GT/s PCIe x1 above a faster device: taken for "
        "16.0 GT/s PCIe x16");
}

TEST_CASE("a bridge of half the speed of what is below it stays so", "[topology]") {
  Topology machine = two_sockets();
  machine.sites[1] = bridge_site("0000:10:00.0", "8.0 GT/s PCIe", "16");
  const Normalised normalised = normalise(machine);
  CHECK(normalised.diagnostics.empty());
  CHECK(rate(normalised.topology, "bridge0", "cpu0", LinkKind::pci) == 12e9);
}

TEST_CASE("speeds that are not told come from beside, below or a default", "[topology]") {
  Topology machine = two_sockets();
  machine.sites[1] = bridge_site("0000:10:00.0", "", "0");
  machine.sites[2].facts["link_speed"] = "Unknown speed";
  for (const int site : {5, 6, 7}) {
    machine.sites[static_cast<std::size_t>(site)].facts.erase("link_speed");
    machine.sites[static_cast<std::size_t>(site)].facts.erase("link_width");
  }
  const Normalised normalised = normalise(machine);
  const Topology& repaired = normalised.topology;
  CHECK(rate(repaired, "gpu0", "bridge0", LinkKind::pci) == 24e9);
  CHECK(rate(repaired, "bridge0", "cpu0", LinkKind::pci) == 24e9);
  CHECK(rate(repaired, "gpu2", "bridge1", LinkKind::pci) == 12e9);
  CHECK(told(normalised, Severity::note).size() == 5);
  CHECK(normalise(repaired).topology == repaired);
}

TEST_CASE("ports: odd speeds are repaired, one listed twice is one", "[topology]") {
  Topology machine = two_sockets();
  const auto add_port = [&](int cpu, std::string name, std::string speed) {
    const int nic = machine.add({SiteKind::nic, fmt::format("nic {} {}", cpu, name), 0, {}});
    machine.connect(nic, cpu, {.kind = LinkKind::inside});
    const int port = machine.add({SiteKind::port,
                                  fmt::format("port {} {}", cpu, name),
                                  0,
                                  {{"name", name}, {"dev", "0"}, {"speed", std::move(speed)}}});
    machine.connect(nic, port, {.kind = LinkKind::port});
  };
  add_port(0, "eth0", "-1");
  add_port(4, "eth0", "-1");
  add_port(0, "cxi0", "200000000");
  const Normalised normalised = normalise(machine);
  CHECK(normalised.topology.sites_of(SiteKind::port).size() == 2);
  CHECK(normalised.topology.sites_of(SiteKind::nic).size() == 2);
  CHECK(rate(normalised.topology, "nic0", "port0", LinkKind::port) == 25e9);  // cxi0
  CHECK(rate(normalised.topology, "nic1", "port1", LinkKind::port) == 1.25e9);
  CHECK(told(normalised, Severity::warning).size() == 1);
  CHECK(normalise(normalised.topology).topology == normalised.topology);
}

TEST_CASE("more CPUs than any machine has are not all joined, and that is told", "[topology]") {
  Topology machine;
  for (int numa = 0; numa < 1100; ++numa) machine.add(cpu_site(numa));
  const Normalised normalised = normalise(machine);
  CHECK(normalised.topology.links.size() == 1024 * 1023);
  const auto warnings = told(normalised, Severity::warning);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().rfind("cpu 1024: ", 0) == 0);
}

TEST_CASE("ports without numbers get those that are left, by the numbers in their names",
          "[topology]") {
  Topology machine = two_sockets();
  for (const char* const name : {"mlx5_10", "eth0", "mlx5_2", "mlx5_1"}) {
    const int nic = machine.add({SiteKind::nic, fmt::format("nic {}", name), 0, {}});
    machine.connect(nic, 0, {.kind = LinkKind::inside});
    Facts facts = {{"name", name}, {"speed", "100000"}};
    if (name == std::string_view("mlx5_1")) facts["dev"] = "1";
    const int port = machine.add({SiteKind::port, fmt::format("port {}", name), 0, facts});
    machine.connect(nic, port, {.kind = LinkKind::port});
  }
  const Normalised normalised = normalise(machine);
  CHECK(normalised.diagnostics.empty());
  std::vector<std::string> ports;  // in the order of their sites
  for (const int port : normalised.topology.sites_of(SiteKind::port)) {
    const Site& site = normalised.topology.site(port);
    ports.push_back(fmt::format("{} {}", site.fact("dev"), site.fact("name")));
  }
  CHECK(ports == std::vector<std::string>{"0 eth0", "1 mlx5_1", "2 mlx5_2", "3 mlx5_10"});
}

TEST_CASE("functions of one NIC share its link", "[topology]") {
  Topology machine = two_sockets();
  for (int function = 0; function < 2; ++function) {
    Site nic{SiteKind::nic,
             fmt::format("nic {}", function),
             0,
             {{"busid", fmt::format("0000:13:00.{}", function)},
              {"link_speed", "16.0 GT/s PCIe"},
              {"link_width", "16"}}};
    const int site = machine.add(std::move(nic));
    machine.connect(site, 1, {.kind = LinkKind::pci});
    const int port =
        machine.add({SiteKind::port,
                     fmt::format("port {}", function),
                     0,
                     {{"name", fmt::format("mlx5_{}", function)}, {"speed", "100000"}}});
    machine.connect(site, port, {.kind = LinkKind::port});
  }
  const Normalised normalised = normalise(machine);
  CHECK(normalised.topology.sites_of(SiteKind::nic).size() == 1);
  CHECK(rate(normalised.topology, "nic0", "port1", LinkKind::port) == 12.5e9);
  CHECK(told(normalised, Severity::note).size() == 1);
}

TEST_CASE("parts of one switch are one", "[topology]") {
  Topology machine;
  const int cpu = machine.add(cpu_site(0));
  const auto part = [](std::string bus_id) {
    Site site = bridge_site(std::move(bus_id));
    site.facts["vendor"] = "0x1000";
    site.facts["device"] = "0xc010";
    return site;
  };
  const int whole = machine.add(part("0000:10:00.0"));
  machine.connect(whole, cpu, {.kind = LinkKind::pci});
  for (int i = 0; i < 2; ++i) {
    const int half = machine.add(part(fmt::format("0000:1{}:00.0", i + 1)));
    machine.connect(half, whole, {.kind = LinkKind::pci});
    const int gpu = machine.add(gpu_site(i, fmt::format("0000:2{}:00.0", i)));
    machine.connect(gpu, half, {.kind = LinkKind::pci});
  }
  const Normalised normalised = normalise(machine);
  CHECK(normalised.topology.sites_of(SiteKind::bridge).size() == 1);
  CHECK(rate(normalised.topology, "gpu1", "bridge0", LinkKind::pci) == 24e9);
}

}  // namespace
}  // namespace khoro
