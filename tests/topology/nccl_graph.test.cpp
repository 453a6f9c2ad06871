// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/nccl_graph.h"

#include <string>

#include "support/catch.h"
#include "support/golden.h"

using namespace khoro;

namespace {

const char* const rings =
    "<graphs version=\"1\">\n"
    "  <graph id=\"0\" pattern=\"4\" crossnic=\"2\" nchannels=\"1\" speedintra=\"12.5\" "
    "speedinter=\"6\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\">\n"
    "    <channel>\n"
    "      <net dev=\"0xb\"/>\n"
    "      <gpu dev=\"0\" rank=\"3\"/>\n"
    "      <gpu dev=\"0x100000000000001\"/>\n"
    "      <net dev=\"0\"/>\n"
    "    </channel>\n"
    "  </graph>\n"
    "  <graph id=\"3\" pattern=\"5\" crossnic=\"0\" nchannels=\"0\" speedintra=\"0\" "
    "speedinter=\"0\" latencyinter=\"0\" typeintra=\"LOC\" typeinter=\"LOC\" samechannels=\"0\"/>\n"
    "</graphs>\n";

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  REQUIRE(text.find(old) != std::string::npos);
  return text.replace(text.find(old), old.size(), by);
}

Diagnostic only_diagnostic(const std::string& old, const std::string& by) {
  const GraphReading reading = read_nccl_graphs(replaced(rings, old, by));
  REQUIRE(reading.diagnostics.size() == 1);
  CHECK(reading.graphs.has_value() == (reading.diagnostics[0].severity != Severity::error));
  return reading.diagnostics[0];
}

}  // namespace

TEST_CASE("search results are read into plain values and written back", "[topology]") {
  const GraphReading reading = read_nccl_graphs(rings);
  CHECK(reading.diagnostics.empty());
  REQUIRE(reading.graphs);
  REQUIRE(reading.graphs->size() == 2);
  const NcclGraph& ring = reading.graphs->front();
  CHECK(ring.pattern == 4);
  CHECK(ring.cross_nic == 2);
  CHECK(ring.speed_intra == 12.5);
  CHECK(ring.speed_inter == 6);
  CHECK(ring.type_intra == "NVL");
  CHECK(ring.same_channels);
  REQUIRE(ring.channels.size() == 1);
  CHECK(ring.channels[0].net_in == 11);
  CHECK(ring.channels[0].net_out == 0);
  CHECK(ring.channels[0].gpus == std::vector<NcclChannel::Gpu>{{0, 3}, {0x100000000000001, -1}});
  CHECK(write_nccl_graphs(*reading.graphs) == rings);
}

TEST_CASE("faults of search results are named where they stand", "[topology]") {
  Diagnostic found = only_diagnostic("nchannels=\"1\"", "nchannels=\"2\"");
  CHECK(found.message == "nchannels 2, but there are 1");
  CHECK(found.line == 2);
  CHECK(found.column == 42);
  found = only_diagnostic("dev=\"0xb\"", "dev=\"11\"");
  CHECK(found.severity == Severity::note);
  CHECK(found.message == "dev \"11\" without 0x: hexadecimal all the same, 17");
  found = only_diagnostic(" dev=\"0xb\"", "");
  CHECK(found.message == "<net> without dev");
  CHECK(found.severity == Severity::error);
  CHECK(only_diagnostic("dev=\"0xb\"", "dev=\"b?\"").severity == Severity::error);
  CHECK(only_diagnostic("pattern=\"4\" ", "").message == "<graph> without pattern");
  CHECK(only_diagnostic("<graphs version=\"1\">", "<graphs version=\"2\">").message ==
        "version 1 is known");
  CHECK(only_diagnostic("<net dev=\"0\"/>", "<net dev=\"0\"/><net dev=\"1\"/>").message ==
        "a second net on one side: the last counts");
  found = only_diagnostic("typeintra=\"NVL\"", "typeintra=\"NV\x19\"");
  CHECK(found.message == "typeintra \"NV?\": no kind of path, taken for LOC");
  CHECK(found.line == 2);
  CHECK(read_nccl_graphs("<system version=\"1\"/>").diagnostics[0].message ==
        "a root element <system>: search results have <graphs>");
}

TEST_CASE("published search results have the channels that their heads announce", "[topology]") {
  const GraphReading reading = read_nccl_graphs(
      test::read_file(test::golden_folder() / "topologies/vastai-hgx-8xb200-container.graph.xml"));
  REQUIRE(reading.graphs);
  CHECK(reading.diagnostics.empty());
  CHECK(reading.graphs->at(0).channels.size() == 16);
  CHECK(reading.graphs->at(0).speed_intra == 45);
  CHECK(reading.graphs->at(1).channels.at(3).gpus.size() == 8);
  // NVLS lists the GPU at the head of each channel alone.
  CHECK(reading.graphs->at(4).id == 3);
  CHECK(reading.graphs->at(4).channels.at(7).gpus.size() == 1);
}
