// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/hwloc_xml.h"

#include <fmt/format.h>

#include <string>

#include "support/catch.h"
#include "support/golden.h"
#include "topology/formats/text.h"
#include "topology/raw_machines.h"

using namespace khoro;

namespace {

using test::link;

std::string golden(const std::string& name) {
  return test::read_file(test::golden_folder() / "topologies" / name);
}

std::string in_machine(const std::string& text, const std::string& more = "") {
  return "<topology version=\"2.0\"><object type=\"Machine\" cpuset=\"0x1\"><object "
         "type=\"NUMANode\" "
         "os_index=\"0\" cpuset=\"0x1\"/>" +
         text + "</object>" + more + "</topology>";
}

std::string device(const std::string& type, const std::string& speed, const std::string& inside) {
  return fmt::format(
      "<object type=\"PCIDev\" gp_index=\"9\" pci_busid=\"0000:01:00.0\" "
      "pci_type=\"{}\" pci_link_speed=\"{}\">{}</object>",
      type, speed, inside);
}

std::string os_device(const std::string& name, int type, const std::string& infos = "") {
  return fmt::format("<object type=\"OSDev\" name=\"{}\" osdev_type=\"{}\">{}</object>", name, type,
                     infos);
}

std::string info(const std::string& name, const std::string& value) {
  return "<info name=\"" + name + "\" value=\"" + value + "\"/>";
}

Topology read(const std::string& text) {
  const Reading reading = read_hwloc_xml(text);
  INFO(text);
  for (const Diagnostic& diagnostic : reading.diagnostics) INFO(diagnostic.message);
  REQUIRE(reading.topology);
  return *reading.topology;
}

/// Speed and width of the one device there.
std::string speed(const std::string& rate) {
  const Topology topology = read(in_machine(device("0302 [10de:2330] [10de:16c0] a1", rate, "")));
  const Site& gpu = topology.sites.at(1);
  return std::string(gpu.fact("link_speed")) + " x" + std::string(gpu.fact("link_width"));
}

}  // namespace

TEST_CASE("NUMA nodes without CPUs are no place, and GPUs are joined from several devices",
          "[topology]") {
  const Topology topology = read(golden("hwloc-version-1.xml"));
  CHECK(topology.sites_of(SiteKind::cpu).size() == 2);
  REQUIRE(topology.ranks() == 1);  // the one that drives a screen is none
  const Site& gpu = topology.site(topology.place[0]);
  CHECK(gpu.fact("dev") == "0");  // by NVML, not CUDA
  CHECK(gpu.fact("model") == "Tesla V100-SXM2-16GB");
  CHECK(gpu.fact("uuid") == "GPU-1");
  CHECK(gpu.fact("sm") == "70");
  CHECK(topology.sites[0].fact("arch") == "ppc64");
  // One port of two is up, and the network's name for it is no further one.
  CHECK(topology.sites_of(SiteKind::port).size() == 1);
}

TEST_CASE("a switch is one bridge, root ports and ends without use are none", "[topology]") {
  const Topology topology = read(golden("hwloc-version-2.xml"));
  CHECK(link(topology, "nic 0000:04:00.0", "bridge 0000:01:00.0") == "pci x1");
  CHECK(link(topology, "bridge 0000:01:00.0", "cpu 0") == "pci x1");
  CHECK(link(topology, "gpu 0001:02:00.0", "cpu 1") == "pci x1");
  CHECK(topology.sites_of(SiteKind::bridge).size() == 2);  // the other carries two GPUs
  CHECK(topology.sites[0].fact("familyid") == "175");      // as NCCL spells 25
}

TEST_CASE("parts of a GPU hang off one function and share its links", "[topology]") {
  const Topology topology = read(golden("hwloc-version-2.xml"));
  CHECK(topology.ranks() == 3);
  CHECK(link(topology, "gpu 0000:03:00.0", "bridge 0000:03:00.0") == "inside x1");
  CHECK(link(topology, "gpu 0000:03:00.0 #2", "bridge 0000:03:00.0") == "inside x1");
  CHECK(link(topology, "bridge 0000:03:00.0", "gpu 0001:02:00.0") == "xgmi x1");
}

TEST_CASE("matrices of bandwidth become counts of links", "[topology]") {
  const Topology topology = read(golden("hwloc-version-3.xml"));
  CHECK(link(topology, "gpu 0002:01:00.0", "gpu 0003:01:00.0") == "nvlink x2");
  CHECK(link(topology, "gpu 0002:01:00.0", "cpu 0") == "pci x1, nvlink x2");
  CHECK(link(topology, "gpu 0002:01:00.0", "fabric 0002:02:00.0") == "nvlink x1");
  CHECK(link(topology, "gpu 0003:01:00.0", "fabric 0002:02:00.0") == "");
}

TEST_CASE("unsound and unequal matrices are named", "[topology]") {
  std::string text = golden("hwloc-version-3.xml");
  const std::string row = "1000000 40000 40000 20000 40000";
  text.replace(text.find(row), row.size(), "1000000 60000 40000 20000 40000");
  Reading reading = read_hwloc_xml(text);
  REQUIRE(reading.topology);
  CHECK(link(*reading.topology, "gpu 0002:01:00.0", "gpu 0003:01:00.0") == "nvlink x2");
  REQUIRE(reading.diagnostics.size() == 1);
  CHECK(reading.diagnostics[0].severity == Severity::warning);
  CHECK(reading.diagnostics[0].line == 39);
  text = golden("hwloc-version-3.xml");
  text.erase(text.find(row), 8);
  reading = read_hwloc_xml(text);
  REQUIRE(reading.topology);
  CHECK(link(*reading.topology, "gpu 0002:01:00.0", "gpu 0003:01:00.0") == "");
  CHECK(reading.diagnostics.at(0).message ==
        "left out: 4 objects and 15 values, which must be so many squared");
}

TEST_CASE("pairs of GPUs more than a hop apart have no link", "[topology]") {
  std::string text = golden("hwloc-version-2.xml");
  const std::string hops = "0 1 1 1 0 1 1 1 0";
  text.replace(text.find(hops), hops.size(), "0 1 2 1 0 2 2 2 0");
  CHECK(link(read(text), "bridge 0000:03:00.0", "gpu 0001:02:00.0") == "");
}

TEST_CASE("rates of buses become generation and lanes", "[topology]") {
  CHECK(speed("63.015385") == "32.0 GT/s PCIe x16");
  CHECK(speed("31.507692") == "16.0 GT/s PCIe x16");
  CHECK(speed("31.000000") == "16.0 GT/s PCIe x16");
  CHECK(speed("15.753846") == "8.0 GT/s PCIe x16");
  CHECK(speed("3.938462") == "8.0 GT/s PCIe x4");
  CHECK(speed("4.000000") == "2.5 GT/s PCIe x16");
  CHECK(speed("2.000000") == "2.5 GT/s PCIe x8");
  CHECK(speed("0.615385") == "5.0 GT/s PCIe x1");
  CHECK(speed("0.250000") == "2.5 GT/s PCIe x1");
  CHECK(speed("0.000000") == " x");
  CHECK(speed("1.700000") == " x");
  CHECK(speed("-1") == " x");
  CHECK(speed("nan") == " x");
}

TEST_CASE("only what computes is a GPU", "[topology]") {
  const auto gpus = [](const std::string& type, const std::string& inside) {
    return read(in_machine(device(type, "0", inside))).ranks();
  };
  CHECK(gpus("0300 [102b:0536] [1028:0b74] 04", "") == 0);
  CHECK(gpus("0300 [1a03:2000] [1a03:2000] 41", os_device("card0", 1)) == 0);
  CHECK(gpus("0300 [10de:1b81] [19da:1435] a1", os_device("card0", 1)) == 0);
  CHECK(gpus("0300 [10de:1b81] [19da:1435] a1", os_device("nvml0", 1)) == 1);
  CHECK(gpus("0302 [10de:2330] [10de:16c0] a1", "") == 1);
  CHECK(gpus("0380 [1002:66a1] [1002:0834] 02", os_device("rsmi0", 1)) == 1);
  CHECK(gpus("1200 [1002:74a0] [1002:74a0] 00", "") == 1);
  CHECK(gpus("0300 [8086:9999] [8086:9999] 00",
             os_device("opencl0d0", 5, info("OpenCLDeviceType", "CPU"))) == 0);
  CHECK(gpus("0b40 [8086:4940] [8086:0000] 40", os_device("opencl0d0", 5)) == 0);
}

TEST_CASE("ports are those that RDMA names, else those of the network, if they are up",
          "[topology]") {
  const auto ports = [](const std::string& inside) {
    std::string names;
    const Topology topology =
        read(in_machine(device("0207 [15b3:1021] [15b3:0041] 00", "0", inside)));
    for (const int port : topology.sites_of(SiteKind::port))
      names += std::string(topology.site(port).fact("name")) + ":" +
               std::string(topology.site(port).fact("port")) + " ";
    return names;
  };
  CHECK(ports(os_device("hsi0", 2)) == "hsi0: ");
  CHECK(ports(os_device("ib0", 2) + os_device("mlx5_0", 3)) == "mlx5_0:1 ");
  CHECK(ports(os_device("ib0", 16) + os_device("mlx5_0", 48)) == "mlx5_0:1 ");
  CHECK(ports(os_device("mlx4_0", 3, info("Port1State", "4") + info("Port2State", "4"))) ==
        "mlx4_0:1 mlx4_0:2 ");
  CHECK(ports(os_device("mlx4_0", 3, info("Port1State", "1") + info("Port2State", "4"))) ==
        "mlx4_0:2 ");
  CHECK(ports(os_device("nvme0", 0)) == "");
}

TEST_CASE("what cannot be read of hwloc's XML is said", "[topology]") {
  const auto message = [](const std::string& text) {
    const Reading reading = read_hwloc_xml(text);
    REQUIRE(!reading.diagnostics.empty());
    return reading.diagnostics.front().message;
  };
  CHECK(message("<topology version=\"4.0\"><object type=\"Machine\"/></topology>") ==
        "version \"4.0\": versions 1 to 3 are known; export it again with an older hwloc, or as "
        "\"v2\"");
  CHECK(message("<topology version=\"2.0\"/>") == "no <object> in it: no machine");
  CHECK(message("<system/>") == "a root element <system>: hwloc writes <topology>");
  CHECK(message(in_machine("<object type=\"PCIDev\" pci_busid=\"x\" pci_type=\"0302 [10de:2330] "
                           "[10de:16c0] a1\"/>")) == "left out: no usable pci_busid");
  // A machine of which nothing is known is one place all the same.
  CHECK(read("<topology><object type=\"Machine\"/></topology>").sites.size() == 1);
}
