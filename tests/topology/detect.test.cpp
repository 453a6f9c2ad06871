// SPDX-License-Identifier: Apache-2.0
#include "topology/detect/detect.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "topology/normalise.h"
#include "topology/raw_machines.h"

namespace khoro {
namespace {

/// A machine of two NUMA nodes: a GPU and an RDMA NIC behind a switch at node 1, an interface of a
/// virtual device at node 0.
KeptFiles machine_files() {
  KeptFiles files;
  files.add_text("proc/cpuinfo",
                 "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n");
  files.add_text("sys/devices/system/node/node0/cpulist", "0-63\n");
  files.add_text("sys/devices/system/node/node0/cpumap", "ffffffff,ffffffff\n");
  files.add_text("sys/devices/system/node/node1/cpulist", "64-127\n");
  files.add_text("sys/devices/system/node/node255/cpulist", "\n");  // memory of a GPU
  const std::string upstream = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0";
  const auto device = [&](const std::string& place, const std::string& pci_class,
                          const std::string& vendor) {
    files.add_text(place + "/class", pci_class + "\n");
    files.add_text(place + "/vendor", vendor + "\n");
    files.add_text(place + "/device", "0x1234\n");
    files.add_text(place + "/subsystem_vendor", "0x0000\n");
    files.add_text(place + "/subsystem_device", "0x0000\n");
    files.add_text(place + "/numa_node", "1\n");
    files.add_text(place + "/current_link_speed", "2.5 GT/s PCIe\n");
    files.add_text(place + "/max_link_speed", "16.0 GT/s PCIe\n");
    files.add_text(place + "/max_link_width", "16\n");
    files.add_link("sys/bus/pci/devices/" + place.substr(place.rfind('/') + 1),
                   "../../../../" + place);
  };
  device("sys/devices/pci0000:80/0000:80:01.0", "0x060400", "0x8086");
  device(upstream, "0x060400", "0x10b5");
  device(upstream + "/0000:82:00.0", "0x060400", "0x10b5");
  device(upstream + "/0000:82:00.0/0000:83:00.0", "0x030200", "0x10de");
  device(upstream + "/0000:82:01.0", "0x060400", "0x10b5");
  const std::string nic = upstream + "/0000:82:01.0/0000:84:00.0";
  device(nic, "0x020700", "0x15b3");
  files.add_text(nic + "/infiniband/mlx5_0/node_guid", "0011:2233:4455:6677\n");
  files.add_text(nic + "/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  files.add_link("sys/class/infiniband/mlx5_0", "../../../" + nic + "/infiniband/mlx5_0");
  files.add_text(nic + "/net/ib0/type", "32\n");
  files.add_link(nic + "/net/ib0/device", "../../../0000:84:00.0");
  files.add_link("sys/class/net/ib0", "../../../" + nic + "/net/ib0");
  files.add_text("sys/devices/virtual/net/lo/type", "772\n");
  files.add_link("sys/class/net/lo", "../../devices/virtual/net/lo");
  return files;
}

TEST_CASE("a machine is read from the files of its kernel", "[topology]") {
  const Reading reading = detect_from(machine_files());
  REQUIRE(reading.topology);
  CHECK(reading.diagnostics.empty());
  const Normalised normalised = normalise(*reading.topology);
  CHECK(normalised.diagnostics.empty());
  const Topology& machine = normalised.topology;
  CHECK(machine.sites_of(SiteKind::cpu).size() == 2);
  CHECK(machine.site(machine.find("cpu0")).fact("vendor") == "AuthenticAMD");
  const Site& gpu = machine.site(machine.find("gpu0"));
  CHECK(gpu.fact("busid") == "0000:83:00.0");
  CHECK(gpu.fact("link_speed") == "16.0 GT/s PCIe");  // not what it runs at now
  const Link* const up = test::link_between(machine, "bridge0", "cpu1", LinkKind::pci);
  REQUIRE(up != nullptr);
  CHECK(up->bytes_per_second == 24e9);
  CHECK(test::link_between(machine, "gpu0", "bridge0", LinkKind::pci) != nullptr);
  CHECK(test::link_between(machine, "nic0", "bridge0", LinkKind::pci) != nullptr);
  REQUIRE(machine.sites_of(SiteKind::port).size() == 1);  // ib0 is the same port
  const Site& port = machine.site(machine.find("port0"));
  CHECK(port.fact("name") == "mlx5_0");
  CHECK(port.fact("speed") == "200000");
  CHECK(port.fact("guid") == "0x0011223344556677");
}

TEST_CASE("files that cannot be read are told once, and the rest is used", "[topology]") {
  KeptFiles files = machine_files();
  const std::string gpu =
      "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0";
  KeptFiles bare;
  bare.add_link("sys/bus/pci/devices/0000:83:00.0", "../../../../" + gpu);
  bare.add_text(gpu + "/class", "0x030200");
  bare.add_text(gpu + "/vendor", "0x10de");
  const Reading reading = detect_from(bare);
  REQUIRE(reading.topology);
  CHECK(reading.topology->sites_of(SiteKind::gpu).size() == 1);
  CHECK(reading.topology->sites_of(SiteKind::cpu).size() == 1);
  REQUIRE(reading.diagnostics.size() == 2);
  CHECK_THAT(reading.diagnostics[0].message, Catch::Contains("no /proc/cpuinfo"));
  CHECK_THAT(reading.diagnostics[1].message, Catch::Contains("not readable here, and left out"));
  for (const Diagnostic& diagnostic : reading.diagnostics)
    CHECK(diagnostic.severity == Severity::warning);
}

TEST_CASE("a model that is a name is no number of a model", "[topology]") {
  KeptFiles files;
  files.add_text("proc/cpuinfo", "cpu\t\t: POWER9, altivec supported\nmodel\t\t: 8335-GTW\n");
  const Reading reading = detect_from(files);
  CHECK(reading.topology->sites.front().fact("arch") == "ppc64");
  CHECK(reading.topology->sites.front().fact("modelid") == "");
}

TEST_CASE("nothing at all is one CPU", "[topology]") {
  const Reading reading = detect_from(KeptFiles());
  REQUIRE(reading.topology);
  CHECK(reading.topology->sites.size() == 1);
}

TEST_CASE("links of an archive are followed, and lead nowhere out of it or round", "[topology]") {
  KeptFiles files;
  files.add_text("sys/a/text", "found\n");
  files.add_link("sys/b", "a");
  files.add_link("sys/c", "../../../../sys/b");
  files.add_link("sys/absolute", "/sys/a");
  files.add_link("sys/round", "around");
  files.add_link("sys/around", "round");
  CHECK(files.text("sys/b/text") == "found");
  CHECK(files.text("sys/c/text") == "found");
  CHECK(files.text("sys/absolute/text") == "found");
  CHECK(files.place("sys/c/text") == "sys/a/text");
  CHECK_FALSE(files.place("sys/round"));
  CHECK_FALSE(files.text("sys/a"));
  CHECK(files.names("sys/b") == std::vector<std::string>{"text"});
}

TEST_CASE("a folder is read as an archive is, and nothing outside of it", "[topology]") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / fmt::format("khoro-files-{}", getpid());
  fs::create_directories(root / "sys/a");
  std::ofstream(root / "sys/a/text") << "found\n";
  fs::create_symlink("a", root / "sys/b");
  fs::create_symlink("/etc/passwd", root / "sys/outside");
  const FolderFiles files(root.string());
  CHECK(files.text("sys/b/text") == "found");
  CHECK(files.place("sys/b/text") == "sys/a/text");
  CHECK(files.names("sys/b") == std::vector<std::string>{"text"});
  CHECK_FALSE(files.text("sys/outside"));
  CHECK_FALSE(files.place("sys/nothing"));
  fs::remove_all(root);
}

TEST_CASE("this machine can be read", "[topology]") {
  const Reading reading = detect_machine();
  REQUIRE(reading.topology);
  CHECK(!reading.topology->sites_of(SiteKind::cpu).empty());
  const Normalised normalised = normalise(*reading.topology);
  CHECK(normalise(normalised.topology).topology == normalised.topology);
}

}  // namespace
}  // namespace khoro
