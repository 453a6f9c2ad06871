// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/nccl_xml.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "support/catch.h"
#include "support/golden.h"
#include "support/topologies.h"
#include "topology/formats/text.h"
#include "topology/raw_machines.h"
#include "topology/topology.h"

using namespace khoro;

namespace {

using test::link;

std::string in_cpu(const std::string& text) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n" + text +
         "\n</cpu>\n</system>\n";
}

std::string in_gpu(const std::string& text) {
  return in_cpu("<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"80\">" + text +
                "</gpu></pci>");
}

std::string gpu(const std::string& bus, const std::string& links) {
  return fmt::format(
      "<pci busid=\"0000:{}:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"80\">{}</gpu></pci>\n",
      bus, links);
}

Topology read(const std::string& text) {
  const Reading reading = read_nccl_xml(text);
  for (const Diagnostic& diagnostic : reading.diagnostics) INFO(diagnostic.message);
  REQUIRE(reading.topology);
  return *reading.topology;
}

struct Said {
  Severity severity;
  int line;
  int column;
  std::string message;
  bool operator==(const Said&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Said& said) {
  return out << int(said.severity) << ' ' << said.line << ':' << said.column << ' ' << said.message;
}

std::vector<Said> said_of(const std::string& text) {
  std::vector<Said> said;
  const Reading reading = read_nccl_xml(text);
  bool failed = false;
  for (const Diagnostic& d : reading.diagnostics) {
    said.push_back({d.severity, d.line, d.column, d.message});
    failed |= d.severity == Severity::error;
  }
  CHECK(reading.topology.has_value() == !failed);
  return said;
}

void says(const std::string& text, const Said& expected) {
  INFO(text);
  CHECK(said_of(text) == std::vector<Said>{expected});
}

const Site& site(const Topology& topology, const std::string& name) {
  const int index = topology.find(name);
  INFO(name << " in\n" << print(topology));
  REQUIRE(index >= 0);
  return topology.site(index);
}

/// A line is one tag: attributes with one blank before each, in double quotes, at most sixteen, and
/// nothing that stands for something else.
bool is_strict(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto pass = [&](std::string_view part) {
    const bool there = line.substr(0, part.size()) == part;
    if (there) line.remove_prefix(part.size());
    return there;
  };
  const auto pass_word = [&] {
    const std::size_t length =
        std::min(line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), line.size());
    line.remove_prefix(length);
    return length > 0;
  };
  if (!pass("<")) return false;
  const bool closing = pass("/");
  if (!pass_word()) return false;
  int attributes = 0;
  for (; !closing && pass(" "); ++attributes) {
    if (!pass_word() || !pass("=\"")) return false;
    const std::size_t end = line.find_first_of("\"<>&");
    if (end == std::string_view::npos || line[end] != '"') return false;
    line.remove_prefix(end + 1);
  }
  if (!closing) pass("/");
  return line == ">" && attributes <= 16;
}

constexpr auto error = Severity::error;
constexpr auto warning = Severity::warning;
constexpr auto note = Severity::note;

}  // namespace

TEST_CASE("every attribute that NCCL knows becomes a fact", "[topology]") {
  const Topology topology = read(
      "<system version=\"2\" name=\"x\">"
      "<cpu host_hash=\"0xA\" numaid=\"3\" affinity=\"ff,00\" arch=\"x86_64\" vendor=\"V\" "
      "familyid=\"6\" modelid=\"0x4f\" keep=\"1\">"
      "<pci busid=\"0000:3B:00.0\" class=\"0x0604FF\" vendor=\"0x1000\" device=\"c030\" "
      "subsystem_vendor=\"0x1\" subsystem_device=\"0x2\" link_speed=\"16.0 GT/s PCIe\" "
      "link_width=\"16\">"
      "<pci busid=\"0000:3c:00.0\" class=\"0x120000\"><gpu dev=\"4\" sm=\"304\" gcn=\"gfx942\" "
      "arch=\"38911\" rank=\"0\" gdr=\"1\" mlopart=\"-1\"><c2c bw=\"44712\" "
      "count=\"5\"/></gpu></pci>"
      "<pci busid=\"0000:3d:00.0\" class=\"0x020000\"><nic><net name=\"mlx5_0\" dev=\"2\" "
      "speed=\"400000\" port=\"1\" guid=\"0xB\" latency=\"1.5\" maxconn=\"128\" gdr=\"1\" "
      "coll=\"1\" "
      "net=\"1\" gin=\"1\" rma=\"1\" rail=\"7\" plane=\"0\"/></nic></pci></pci></cpu></system>");
  CHECK(site(topology, "cpu 3").facts == Facts{{"host_hash", "0xA"},
                                               {"numaid", "3"},
                                               {"affinity", "ff,00"},
                                               {"arch", "x86_64"},
                                               {"vendor", "V"},
                                               {"familyid", "6"},
                                               {"modelid", "0x4f"}});
  CHECK(site(topology, "bridge 0000:3b:00.0").facts == Facts{{"busid", "0000:3b:00.0"},
                                                             {"class", "0x0604ff"},
                                                             {"vendor", "0x1000"},
                                                             {"device", "0xc030"},
                                                             {"subsystem_vendor", "0x1"},
                                                             {"subsystem_device", "0x2"},
                                                             {"link_speed", "16.0 GT/s PCIe"},
                                                             {"link_width", "16"}});
  CHECK(site(topology, "gpu 0000:3c:00.0").facts == Facts{{"busid", "0000:3c:00.0"},
                                                          {"class", "0x120000"},
                                                          {"dev", "4"},
                                                          {"sm", "304"},
                                                          {"gcn", "gfx942"},
                                                          {"arch", "38911"},
                                                          {"rank", "0"},
                                                          {"gdr", "1"},
                                                          {"mlopart", "-1"},
                                                          {"c2c_bw", "44712"}});
  CHECK(site(topology, "port mlx5_0").facts.size() == 14);
  CHECK(site(topology, "port mlx5_0").fact("rail") == "7");
  CHECK(link(topology, "gpu 0000:3c:00.0", "cpu 3") == "c2c x5");
  CHECK(link(topology, "gpu 0000:3c:00.0", "bridge 0000:3b:00.0") == "pci x1");
  CHECK(link(topology, "nic 0000:3d:00.0", "port mlx5_0") == "port x1");
}

TEST_CASE("what a PCI function is follows from what is inside, else from its class", "[topology]") {
  const auto kind = [](const std::string& attributes, const std::string& inside) {
    const Topology topology =
        read(in_cpu("<pci busid=\"0000:01:00.0\" " + attributes + ">" + inside + "</pci>"));
    return std::string(name(topology.sites[1].kind));
  };
  const std::string nic = "<nic><net name=\"a\" dev=\"0\" speed=\"1\"/></nic>";
  const std::string child = "<pci busid=\"0000:02:00.0\" class=\"0x020000\"/>";
  CHECK(kind("class=\"0x030200\"", "") == "gpu");
  CHECK(kind("class=\"0x038000\"", "") == "gpu");
  CHECK(kind("class=\"0x120000\"", "") == "gpu");
  CHECK(kind("class=\"0x020700\"", "") == "nic");
  CHECK(kind("class=\"0x060400\"", child) == "bridge");
  CHECK(kind("class=\"0x068000\"", "") == "bridge");
  CHECK(kind("", "") == "bridge");
  CHECK(kind("class=\"0x060000\"", nic) == "nic");
  CHECK(kind("", nic) == "nic");
  CHECK(kind("class=\"0x020000\"", nic + child) == "nic");
  CHECK(kind("class=\"0x060400\"", nic + child) == "bridge");
  CHECK(kind("class=\"0x060400\"", "<gpu dev=\"0\"/>") == "gpu");
  CHECK(kind("class=\"0x030200\"", "<gpu dev=\"0\"/><gpu dev=\"0\"/>") == "bridge");
}

TEST_CASE("values that make no sense get a default, or are refused where they stand",
          "[topology]") {
  const auto net = [](const std::string& attribute) {
    return in_cpu("<nic><net name=\"a\" dev=\"0\" " + attribute + "/></nic>");
  };
  const std::string whole = "must be a whole number from ";
  says(net("speed=\"-1\""),
       {warning, 3, 28, "speed \"-1\": " + whole + "1 to 2147483647; taken for 10000"});
  says(net("speed=\"0\""),
       {warning, 3, 28, "speed \"0\": " + whole + "1 to 2147483647; taken for 10000"});
  says(net("speed=\"fast\""),
       {warning, 3, 28, "speed \"fast\": " + whole + "1 to 2147483647; taken for 10000"});
  says(net("maxconn=\"x\""),
       {warning, 3, 28, "maxconn \"x\": " + whole + "1 to 2147483647; taken for 64"});
  says(net("latency=\"-2\""),
       {warning, 3, 28, "latency \"-2\": must be a number from 0 to 1000000; taken for 0"});
  says(net("rail=\"a\""), {warning, 3, 28, "rail \"a\": " + whole + "-1 to 2147483647; left out"});
  says(in_cpu("<nic><net name=\"a\" speed=\"1\"/></nic>"),
       {warning, 3, 6, "no dev: kept, but NCCL ignores such a net"});
  says(in_cpu("<pci busid=\"0000:01:00.0\" class=\"0x0604\" link_width=\"many\"/>"),
       {warning, 3, 42, "link_width \"many\": " + whole + "0 to 64; taken for 0"});
  says(in_cpu("<pci busid=\"0000:01:00.0\" class=\"GPU\"><gpu dev=\"0\"/></pci>"),
       {warning, 3, 27, "class \"GPU\": must be a hexadecimal number; left out"});
  says(in_cpu("<pci busid=\"0000:01:00.0\"><gpu dev=\"zero\"/></pci>"),
       {error, 3, 32, "dev \"zero\": " + whole + "-1 to 2147483647; correct it or leave it out"});
  says("<system version=\"1\"><cpu arch=\"arm64\" numaid=\"first\"/></system>",
       {error, 1, 39,
        "numaid \"first\": " + whole + "-1 to 2147483647; correct it or leave it out"});
  says("<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\" affinity=\"all\"/></system>",
       {warning, 1, 50,
        "affinity \"all\": must be hexadecimal words with commas between them; left out"});
}

TEST_CASE("what is missing is said, and what must not be is an error", "[topology]") {
  says("<system><cpu numaid=\"0\" arch=\"arm64\"/></system>",
       {warning, 1, 1, "no version: read as version 1, but NCCL refuses such a file"});
  says("<system version=\"3\"><cpu numaid=\"0\" arch=\"arm64\"/></system>",
       {error, 1, 9, "version \"3\": versions 1 and 2 are known"});
  says("<system version=\"1\"/>", {error, 1, 1, "no <cpu> in it: a machine has at least one"});
  says("<topology/>", {error, 1, 1, "a root element <topology>: a topology has <system>"});
  says("<system version=\"1\"><cpu arch=\"arm64\"/></system>",
       {warning, 1, 21, "no numaid: its NUMA node is unknown"});
  CHECK(said_of("<system version=\"1\"><cpu numaid=\"0\"/></system>").size() == 1);
  says(in_cpu("<pci class=\"0x030200\"/>"),
       {error, 3, 1, "no busid: give the bus id of the function, as \"0000:3b:00.0\""});
  CHECK(said_of(in_cpu("<pci busid=\"GPU0\" class=\"0x030200\"/>"))[0].column == 6);
  says(in_cpu("<pci busid=\"3B:00.0\" class=\"0x030200\"/>"),
       {note, 3, 6, "busid read as \"0000:3b:00.0\""});
  CHECK(said_of(in_cpu("<pci busid=\"0000:01:00.0\"/>"))[0].severity == warning);
  says(in_gpu("<nvlink count=\"1\"/>"),
       {error, 3, 65, "<nvlink> without target: give the bus id of its other end"});
  CHECK(said_of(in_gpu("<c2c count=\"5\"/>"))[0].message ==
        "<c2c> without bw: its rate is not known");
  CHECK(said_of(in_gpu("<c2c bw=\"44712\"/>"))[0].message ==
        "<c2c> without count: taken for one link");
}

TEST_CASE("what is unknown is noted, and attributes are kept", "[topology]") {
  says(in_cpu("<nic colour=\"red\"/>"), {note, 3, 6, "colour: an unknown attribute, kept"});
  CHECK(read(in_cpu("<nic colour=\"red\"/>")).sites[1].fact("colour") == "red");
  says(in_cpu("<disk/>"), {note, 3, 1, "an element <disk> inside <cpu>: ignored"});
  says(in_gpu("<ualink/>"), {note, 3, 65, "an element <ualink> inside <gpu>: ignored"});
  CHECK(said_of(in_cpu("here"))[0].message.rfind("text \"", 0) == 0);
  CHECK(said_of(in_cpu("<nic a=\"1\" a=\"2\"/>"))[1].message == "a second a: the first one counts");
  CHECK(said_of(in_cpu("<nic/>\n<!-- <pci> --><nic/>")).empty());
}

TEST_CASE("links are what both of their ends claim", "[topology]") {
  const auto nvlink = [](const std::string& to, int count) {
    return fmt::format("<nvlink target=\"0000:{}:00.0\" count=\"{}\" tclass=\"0x030200\"/>", to,
                       count);
  };
  const auto pair = [&](const std::string& one, const std::string& other) {
    return in_cpu(gpu("01", one) + gpu("02", other));
  };
  const std::string a = "gpu 0000:01:00.0", b = "gpu 0000:02:00.0";
  CHECK(link(read(pair(nvlink("02", 4), nvlink("01", 4))), a, b) == "nvlink x4");
  CHECK(link(read(pair(nvlink("02", 4), nvlink("01", 4))), b, a) == "nvlink x4");
  // Several elements add up.
  CHECK(link(read(pair(nvlink("02", 1) + nvlink("02", 2), nvlink("01", 3))), a, b) == "nvlink x3");
  CHECK(link(read(pair(nvlink("02", 12), nvlink("01", 8))), a, b) == "nvlink x8");
  says(pair(nvlink("02", 12), nvlink("01", 8)),
       {warning, 3, 65, "12 links to gpu 0000:02:00.0, which has 8 back: 8 are used"});
  CHECK(link(read(pair(nvlink("02", 4), "")), a, b) == "");
  says(pair(nvlink("02", 4), ""),
       {warning, 3, 65,
        "nvlink link to \"0000:02:00.0\" left out: gpu 0000:02:00.0 does not say that it has it"});
  says(pair(nvlink("01", 4), ""),
       {warning, 3, 65, "nvlink link to \"0000:01:00.0\" left out: the target is the GPU itself"});
  says(pair(nvlink("77", 4), ""),
       {warning, 3, 65,
        "nvlink link to \"0000:77:00.0\" left out: the target is no GPU of this text"});
  says(pair(nvlink("02", 0), ""),
       {warning, 3, 65,
        "nvlink link to \"0000:02:00.0\" left out: count 0 says that there is no link"});
  says(pair("<nvlink target=\"switch\" count=\"4\" tclass=\"0x068000\"/>", ""),
       {warning, 3, 65, "nvlink link to \"switch\" left out: the target is no bus id"});
}

TEST_CASE("links lead to switches, to the CPU and to GPUs of the same machine", "[topology]") {
  const auto to = [](const std::string& target, const std::string& target_class) {
    return "<nvlink target=\"" + target + "\" count=\"2\" tclass=\"" + target_class + "\"/>";
  };
  Topology topology = read(in_cpu(
      gpu("01", to("0000:c1:00.0", "0x068000") + to("0000:c2:00.0", "0x068000")) +
      gpu("02", to("0000:C1:00.0", "0x068000")) + gpu("03", to("0006:00:01.0", "0x068001"))));
  CHECK(link(topology, "gpu 0000:01:00.0", "fabric 0000:c1:00.0") == "nvlink x2");
  CHECK(link(topology, "gpu 0000:01:00.0", "fabric 0000:c2:00.0") == "nvlink x2");
  CHECK(link(topology, "gpu 0000:02:00.0", "fabric 0000:c1:00.0") == "nvlink x2");
  CHECK(link(topology, "gpu 0000:03:00.0", "cpu 0") == "pci x1, nvlink x2");
  CHECK(topology.sites_of(SiteKind::fabric).size() == 2);
  // Two machines with the same bus ids: switches that can be seen are apart, those that cannot one.
  const auto machine = [&](const std::string& host) {
    return "<cpu numaid=\"0\" arch=\"arm64\" host_hash=\"" + host + "\">" +
           gpu("01", to("0000:02:00.0", "0x030200") + to("0000:c1:00.0", "0x068000") +
                         to("fffffff:ff:ff.0", "0x068000")) +
           gpu("02", to("0000:01:00.0", "0x030200")) + "</cpu>";
  };
  topology =
      read("<system version=\"1\">" + machine("0xHOST_A") + machine("0xHOST_B") + "</system>");
  CHECK(topology.sites_of(SiteKind::fabric).size() == 3);
  CHECK(link(topology, "gpu 0000:01:00.0", "gpu 0000:02:00.0") == "nvlink x2");
  CHECK(link(topology, "1/gpu 0000:01:00.0", "1/gpu 0000:02:00.0") == "nvlink x2");
  CHECK(link(topology, "gpu 0000:01:00.0", "1/gpu 0000:02:00.0") == "");
  CHECK(link(topology, "1/gpu 0000:01:00.0", "1/fabric 0000:c1:00.0") == "nvlink x2");
  CHECK(link(topology, "1/gpu 0000:01:00.0", "fabric fffffff:ff:ff.0") == "nvlink x2");
  CHECK(site(topology, "1/gpu 0000:02:00.0").machine == 1);
}

TEST_CASE("switches that are one are joined, whichever of them says so", "[topology]") {
  const auto bridge = [](const std::string& bus, const std::string& inside) {
    return "<pci busid=\"0000:" + bus + ":00.0\" class=\"0x060400\">" + inside + "</pci>";
  };
  const auto pcilink = [](const std::string& bus) {
    return "<pcilink target=\"0000:" + bus + ":00.0\"/>";
  };
  const std::string a = "bridge 0000:01:00.0", b = "bridge 0000:02:00.0";
  for (const std::string& text : {bridge("01", pcilink("02")) + bridge("02", pcilink("01")),
                                  bridge("01", pcilink("02")) + bridge("02", ""),
                                  bridge("01", "") + bridge("02", pcilink("01"))})
    CHECK(link(read(in_cpu(text)), a, b) == "inside x1");
  CHECK(said_of(in_cpu(bridge("01", pcilink("01"))))[0].message ==
        "<pcilink> left out: its target is no other switch");
  CHECK(said_of(in_cpu(bridge("01", pcilink("07"))))[0].severity == warning);
}

TEST_CASE("ranks are placed by rank, then by device number", "[topology]") {
  const auto place = [](std::vector<std::string> attributes) {
    std::string text;
    for (std::size_t i = 0; i < attributes.size(); ++i)
      text += fmt::format("<pci busid=\"0000:0{}:00.0\"><gpu {}/></pci>", i, attributes[i]);
    std::string found;
    const Topology topology = read(in_cpu(text));
    for (const int gpu : topology.place) found += topology.site(gpu).fact("busid")[6];
    return found;
  };
  CHECK(place({"dev=\"2\"", "dev=\"0\"", "dev=\"10\""}) == "102");
  CHECK(place({"dev=\"0\" rank=\"2\"", "dev=\"1\" rank=\"10\"", "dev=\"2\" rank=\"0\""}) == "201");
  CHECK(place({"dev=\"0\"", "dev=\"1\" rank=\"1\"", "dev=\"2\" rank=\"0\""}) == "210");
  CHECK(place({"dev=\"-1\"", "dev=\"1\""}) == "1");
  says(in_cpu("<pci busid=\"0000:01:00.0\"><gpu dev=\"0\" rank=\"1\"/></pci>"
              "<pci busid=\"0000:02:00.0\"><gpu dev=\"1\" rank=\"1\"/></pci>"),
       {warning, 1, 1, "two GPUs of one rank: in the order of the text"});
}

TEST_CASE("devices of one bus id are kept apart and named", "[topology]") {
  const auto twice = [](const std::string& kind) {
    const std::string pci = "<pci busid=\"0000:01:00.0\" class=\"" + kind + "\"/>";
    return said_of(in_cpu(pci + "\n" + pci));
  };
  REQUIRE(twice("0x030200").size() == 1);
  CHECK(twice("0x030200")[0].severity == warning);
  CHECK(twice("0x030200")[0].line == 4);
  CHECK(twice("0x060400")[0].severity == note);
  CHECK(said_of("<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\"/>\n<cpu numaid=\"0\" "
                "arch=\"arm64\"/></system>")[0]
            .message == "a second <cpu> of this numaid: kept apart");
}

TEST_CASE("files are written as NCCL's strict parser wants them", "[topology]") {
  int lines = 0;
  for (const auto& file : test::golden_topologies()) {
    const Reading reading = read_nccl_xml(test::read_file(file));
    if (!reading.topology || file.string().find("entity-bomb") != std::string::npos) continue;
    std::istringstream text(write_nccl_xml(*reading.topology));
    for (std::string next; std::getline(text, next); ++lines) {
      INFO(file.string() << ": " << next);
      REQUIRE(is_strict(next));
    }
  }
  CHECK(lines > 300);
  CHECK(!is_strict("<a  b=\"c\">"));
  CHECK(!is_strict("<a b='c'>"));
  const std::string mesh = test::read_file(test::golden_folder() / "topologies/xgmi-mesh.xml");
  CHECK(write_nccl_xml(read(mesh)).rfind("<system version=\"2\">", 0) == 0);
  CHECK(write_nccl_xml(read(in_cpu(""))).rfind("<system version=\"1\">", 0) == 0);
}

TEST_CASE("machines that did not come from NCCL can be written for it", "[topology]") {
  Topology topology;
  for (int machine = 0; machine < 2; ++machine) {
    const int cpu = topology.add({SiteKind::cpu, fmt::format("cpu{}", machine), machine, {}});
    const int gpu = topology.add({SiteKind::gpu, fmt::format("gpu{}", machine), machine, {}});
    const int port = topology.add({SiteKind::port, fmt::format("port{}", machine), machine, {}});
    const int nic = topology.add({SiteKind::nic, fmt::format("nic{}", machine), machine, {}});
    // Whichever way they were connected, and whatever comes first.
    topology.connect(cpu, gpu, {0, 0, LinkKind::pci});
    topology.connect(port, nic, {0, 0, LinkKind::port});
    topology.connect(cpu, nic, {0, 0, LinkKind::inside});
    topology.place.push_back(gpu);
  }
  const int fabric = topology.add({SiteKind::fabric, "fabric0", 0, {}});
  for (const int gpu : topology.place) topology.connect(gpu, fabric, {0, 0, LinkKind::nvlink, 18});
  topology.add({SiteKind::gpu, "lost", 0, {{"busid", "0000:99:00.0"}}});
  const Topology again = read(write_nccl_xml(topology));
  CHECK(again.sites_of(SiteKind::gpu).size() == 3);
  CHECK(again.sites_of(SiteKind::port).size() == 2);
  CHECK(again.sites_of(SiteKind::fabric).size() == 1);
  CHECK(again.sites_of(SiteKind::cpu).size() == 3);  // one for what hangs off none
  CHECK(again.machine_of(0) != again.machine_of(2));
  CHECK(site(again, "cpu -1").fact("host_hash") == "0x1");
}

TEST_CASE("a chain of bridges beyond what readers take is refused", "[topology]") {
  Topology topology;
  int above = topology.add({SiteKind::cpu, "cpu0", 0, {}});
  for (int i = 0; i < 200; ++i) {
    const int bridge = topology.add({SiteKind::bridge, fmt::format("bridge{}", i), 0, {}});
    topology.connect(bridge, above, {0, 0, LinkKind::pci});
    above = bridge;
  }
  CHECK_THROWS_AS(write_nccl_xml(topology), Error);
}
