// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <random>
#include <string>

#include "support/catch.h"
#include "support/seeds.h"
#include "support/topologies.h"
#include "support/topology_laws.h"
#include "topology/formats/hwloc_xml.h"

using namespace khoro;
using test::broken_law;
using test::read_file;

namespace {

/// What a hand that slips, or one that means harm, makes of a text.
std::string changed(std::string text, std::mt19937& random) {
  static const std::vector<std::string> pieces = {
      "<",           ">",         "\"",        "'",      "/>",
      "<!--",        "-->",       "<![CDATA[", "&amp;",  "&#0;",
      "<pci>",       "=",         "-1",        "0x",     "99999999999999999999",
      "\n",          "<!DOCTYPE", "</cpu>",    "count=", "\xff",
      "</pci>",      "rank",      "\"\"",      " #",     "link",
      "\xEF\xBB\xBF"};
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (std::size_t times = 1 + below(4); times > 0 && !text.empty(); --times) {
    const std::size_t at = below(text.size());
    const std::size_t length = std::min(below(60), text.size() - at);
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), 200));
        break;
      case 3:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      case 4:
        text.replace(at, length, pieces[below(pieces.size())]);
        break;
      default:
        std::swap(text[at], text[below(text.size())]);
    }
  }
  return text;
}

double seconds_of(const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(broken_law(text) == "");
  CHECK(read_hwloc_xml(text).diagnostics.size() < 250);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("a file cut anywhere is judged, never a crash", "[topology]") {
  auto files = test::golden_topologies();
  for (const auto& file : files) {
    const std::string text = read_file(file);
    // Every byte of small files; of larger ones so many that the test stays short.
    const std::size_t step = 1 + text.size() / 1500;
    for (std::size_t size = 0; size < text.size(); size += step) {
      const std::string law = broken_law(text.substr(0, size));
      if (law.empty()) continue;
      INFO(file.string() << " cut after " << size << " bytes");
      REQUIRE(law == "");
    }
  }
}

TEST_CASE("each further machine cut anywhere is judged, never a crash", "[topology]") {
  for (const auto& file : test::more_topologies()) {
    const std::string text = read_file(file);
    const std::size_t step = 1 + text.size() / 60;
    for (std::size_t size = 0; size < text.size(); size += step) {
      const std::string law = broken_law(text.substr(0, size));
      if (law.empty()) continue;
      INFO(file.string() << " cut after " << size << " bytes");
      REQUIRE(law == "");
    }
  }
}

TEST_CASE("texts changed at random are judged, never a crash", "[topology]") {
  std::vector<std::string> texts;
  for (const auto& file : test::golden_topologies()) {
    texts.push_back(read_file(file));
    const Reading reading = read_topology(texts.back());
    if (reading.topology) texts.push_back(print(*reading.topology));
  }
  test::for_each_seed(4000, [&](std::uint64_t seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const std::string text = changed(texts[seed % texts.size()], random);
    REQUIRE(broken_law(text) == "");
  });
}

TEST_CASE("a huge text is refused, or read in bounded time", "[topology][slow]") {
  const std::string head = "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\">";
  const std::string tail = "</cpu></system>";
  std::vector<std::string> texts = {
      repeated("<a>", 1 << 20),
      repeated("<", 8 << 20),
      repeated("<!--", 4 << 20),
      repeated("<!DOCTYPE ", 1 << 20),
      repeated("topology\n", 1 << 20),
      "topology\n" + repeated("gpu a machine 0\n", 1 << 19),
      std::string(17 << 20, ' '),
      std::string(1 << 20, '\0'),
      head + repeated("<pci/>", 60000) + tail,
      head + repeated("<pci busid=\"0000:00:00.0\"/>", 60000) + tail,
      head + repeated("<nic><net x=\"1\" y=\"2\"/></nic>", 30000) + tail,
      head +
          repeated("<pci busid=\"0000:01:00.0\" class=\"0x030000\"><gpu dev=\"0\"><nvlink "
                   "target=\"0000:01:00.0\" count=\"1\"/></gpu></pci>",
                   30000) +
          tail,
      head + repeated("<pci busid=\"0000:01:00.0\">", 120) + repeated("</pci>", 120) + tail,
      head + "<pci busid=\"0000:01:00.0\"" + repeated(" a=\"1\"", 10000) + "/>" + tail,
      "<topology>" + repeated("<object type=\"NUMANode\" cpuset=\"0x1\"/>", 100000) + "</topology>",
      "<topology><object type=\"Machine\">" + repeated("<info name=\"a\" value=\"b\"/>", 60000) +
          repeated("<object type=\"NUMANode\" cpuset=\"0x1\"/>", 4000) + "</object></topology>",
      "<topology><object type=\"Machine\"/><distances2 type=\"OSDev\" "
      "name=\"NVLinkBandwidth\"><indexes>" +
          repeated("1 ", 2000) + "</indexes><u64values>" + repeated("1 ", 4000000) +
          "</u64values></distances2></topology>",
  };
  for (std::size_t i = 0; i < texts.size(); ++i) {
    INFO("text " << i);
    const double seconds = seconds_of(texts[i]);
    CHECK(seconds < 60);
  }
}
