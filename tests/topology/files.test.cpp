// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>

#include "support/catch.h"
#include "support/golden.h"
#include "support/topologies.h"
#include "support/topology_laws.h"
#include "topology/formats/chips.h"
#include "topology/normalise.h"

using namespace khoro;
using test::read_file;

namespace {

std::string listing(const Reading& reading) {
  std::string text;
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    static constexpr std::array<std::string_view, 3> names = {"note", "warning", "error"};
    text += fmt::format("# {}:{}: {}: {}{}{}\n", diagnostic.line, diagnostic.column,
                        names[static_cast<std::size_t>(diagnostic.severity)], diagnostic.place,
                        diagnostic.place.empty() ? "" : ": ", diagnostic.message);
  }
  return reading.topology ? text + print(*reading.topology) : text;
}

/// "8" of "8 GPU (by class), 2 cpu elements ..." for `what` " GPU"; -1 if nothing is said.
int counted(const std::string& row, const std::string& what) {
  const std::size_t end = row.find(" " + what);
  if (end == std::string::npos) return -1;
  const std::size_t begin = row.find_last_not_of("0123456789", end - 1) + 1;
  return begin == end ? -1 : std::stoi(row.substr(begin, end - begin));
}

/// The rows of the table of machines, by file.
std::map<std::string, std::string> described(const std::filesystem::path& folder) {
  std::map<std::string, std::string> rows;
  std::istringstream lines(read_file(folder / "README.md"));
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("| ", 0) == 0) {
      const std::size_t second = line.find(" | ", 2);
      // The third column says what was counted.
      const std::size_t third = line.find(" | ", second + 1);
      if (third != std::string::npos) rows[line.substr(2, second - 2)] = line.substr(third);
    }
  return rows;
}

int count(const Topology& topology, SiteKind kind) {
  return static_cast<int>(topology.sites_of(kind).size());
}

}  // namespace

TEST_CASE("what is read of each recorded machine is as accepted", "[topology]") {
  const auto files = test::golden_topologies();
  REQUIRE(files.size() > 20);
  for (const auto& file : files) {
    auto accepted = file;
    accepted.replace_extension(".topology");
    const std::string text = listing(read_topology(read_file(file)));
    test::check_golden(accepted, text);
    // A listing is a text of the project's own: its diagnostics are comments there.
    const Reading reading = read_topology(read_file(file));
    if (reading.topology) CHECK(read_topology(text).topology == reading.topology);
  }
}

TEST_CASE("each file that is bad says what is wrong with it", "[topology]") {
  for (const auto& file : test::golden_topologies()) {
    if (file.filename().string().rfind("bad-", 0) != 0) continue;
    INFO(file.string());
    CHECK(!read_topology(read_file(file)).diagnostics.empty());
  }
}

TEST_CASE("every machine written as NCCL's XML is read again as the same", "[topology]") {
  auto files = test::golden_topologies();
  for (const auto& file : test::more_topologies()) files.push_back(file);
  int same = 0;
  for (const auto& file : files) {
    INFO(file.string());
    const std::string text = read_file(file);
    CHECK(test::broken_law(text) == "");
    const Reading reading = read_nccl_xml(text);
    if (!reading.topology) continue;
    const Reading again = read_nccl_xml(write_nccl_xml(*reading.topology));
    REQUIRE(again.topology);
    CHECK(*again.topology == *reading.topology);
    ++same;
  }
  CHECK(same > 15);
}

TEST_CASE("what is written for NCCL of any machine says all that NCCL wants of a NIC",
          "[topology]") {
  int ports = 0;
  auto files = test::golden_topologies();
  for (const auto& file : test::more_topologies()) files.push_back(file);
  for (const auto& file : files) {
    INFO(file.string());
    const Reading reading = read_topology(read_file(file));
    if (!reading.topology) continue;
    const Reading again = read_nccl_xml(write_nccl_xml(normalise(*reading.topology).topology));
    REQUIRE(again.topology);
    for (const Diagnostic& diagnostic : again.diagnostics)
      CHECK(diagnostic.place.rfind("net", 0) == std::string::npos);
    for (const int port : again.topology->sites_of(SiteKind::port)) {
      CHECK(again.topology->site(port).fact("dev") != "");
      ++ports;
    }
  }
  CHECK(ports > 30);
}

TEST_CASE("the devices of every machine are those that were counted in its file", "[topology]") {
  int compared = 0;
  std::map<std::string, std::string> rows;
  for (const auto& file : test::more_topologies()) {
    if (rows.empty()) rows = described(file.parent_path());
    const auto row = rows.find(file.filename().string());
    const Reading reading = read_nccl_xml(read_file(file));
    if (row == rows.end() || !reading.topology) continue;
    INFO(file.string());
    const auto check = [&](const std::string& what, SiteKind kind) {
      const int said = counted(row->second, what);
      if (said < 0) return;
      CHECK(count(*reading.topology, kind) == said);
      ++compared;
    };
    check("GPU", SiteKind::gpu);
    check("cpu elements", SiteKind::cpu);
    check("nets", SiteKind::port);
  }
  CHECK((compared > 200 || std::string(KHORO_TOPOLOGIES).empty()));
}

TEST_CASE("one machine in two versions of hwloc's XML is read as the same", "[topology]") {
  int pairs = 0;
  for (const auto& file : test::more_topologies()) {
    const std::string name = file.string();
    const std::size_t mark = name.find("-v2.xml");
    if (mark == std::string::npos) continue;
    const std::filesystem::path newer = name.substr(0, mark) + ".xml";
    if (!std::filesystem::exists(newer)) continue;
    INFO(name);
    const Reading old_one = read_topology(read_file(file));
    const Reading new_one = read_topology(read_file(newer));
    REQUIRE(old_one.topology);
    CHECK(old_one.topology == new_one.topology);
    ++pairs;
  }
  CHECK((pairs == 2 || std::string(KHORO_TOPOLOGIES).empty()));
}

TEST_CASE("device ids tell the same chip as the files that name it", "[topology]") {
  int compared = 0;
  auto files = test::golden_topologies();
  for (const auto& file : test::more_topologies()) files.push_back(file);
  for (const auto& file : files) {
    const Reading reading = read_nccl_xml(read_file(file));
    if (!reading.topology) continue;
    for (const int gpu : reading.topology->sites_of(SiteKind::gpu)) {
      const Site& site = reading.topology->site(gpu);
      const Chip chip = chip_of(site.fact("vendor"), site.fact("device"));
      INFO(file.string() << " " << site.name);
      if (!chip.sm.empty() && !site.fact("sm").empty()) CHECK(chip.sm == site.fact("sm"));
      if (!chip.gcn.empty()) {
        const std::string_view known = site.fact("gcn");
        CHECK(chip.gcn.substr(chip.gcn.size() - 3) == known.substr(known.size() - 3));
      }
      compared += !chip.sm.empty() || !chip.gcn.empty();
    }
  }
  CHECK(compared > 20);
  CHECK(chip_of("0x10de", "0x1234").sm.empty());
  CHECK(chip_of("0x8086", "0x2330").sm.empty());
}

TEST_CASE("NCCL's search results are read and written without a loss", "[topology]") {
  auto files = test::golden_topologies();
  for (const auto& file : test::more_topologies()) files.push_back(file);
  int graphs = 0;
  for (const auto& file : files) {
    if (!test::is_graph(file)) continue;
    INFO(file.string());
    const GraphReading reading = read_nccl_graphs(read_file(file));
    REQUIRE(reading.graphs);
    const std::string written = write_nccl_graphs(*reading.graphs);
    CHECK(read_nccl_graphs(written).graphs == reading.graphs);
    CHECK(read_topology(written).diagnostics.size() == 1);  // it is no topology
    ++graphs;
  }
  CHECK(graphs >= 2);
}
