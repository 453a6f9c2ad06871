// SPDX-License-Identifier: Apache-2.0
// What describes a machine in another order describes the same machine.
#include <algorithm>
#include <pugixml.hpp>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.h"
#include "support/topologies.h"
#include "topology/answers.h"
#include "topology/formats/read.h"
#include "topology/formats/text.h"
#include "topology/normalise.h"

using namespace khoro;

namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// Whether an element may stand anywhere among its siblings of this kind. In NCCL's XML all may:
/// what numbers a device is written in it. In hwloc's the order of packages, NUMA nodes and cores
/// numbers these, that of root objects the machines, and devices of one library in one PCI function
/// go with those of another library in their order. Bridges and PCI functions are told apart by
/// their bus ids, infos by their names, and matrices name what they are about.
bool has_free_place(pugi::xml_node element, bool hwloc) {
  if (!hwloc) return true;
  if (is_one_of(element.name(), {"info", "distances2", "distances2hetero"})) return true;
  return element.name() == std::string_view("object") &&
         is_one_of(element.attribute("type").value(), {"Bridge", "PCIDev"});
}

void shuffle(pugi::xml_node element, bool hwloc, std::mt19937_64& random) {
  std::vector<pugi::xml_node> free;
  for (const pugi::xml_node child : element.children()) {
    shuffle(child, hwloc, random);
    if (child.type() == pugi::node_element && has_free_place(child, hwloc)) free.push_back(child);
  }
  std::shuffle(free.begin(), free.end(), random);
  for (const pugi::xml_node child : free) element.append_move(child);
}

std::string shuffled(const std::string& text, std::uint64_t seed) {
  pugi::xml_document document;
  REQUIRE(document.load_buffer(text.data(), text.size()));
  std::mt19937_64 random(seed);
  const pugi::xml_node root = document.document_element();
  shuffle(root, root.name() == std::string_view("topology"), random);
  std::ostringstream other;
  document.save(other, " ", pugi::format_raw);
  return other.str();
}

/// The machine and what is found on it; "" where the text describes none.
std::string described(const std::string& text) {
  Reading reading = read_topology(text);
  if (!reading.topology) return "";
  const Topology topology = normalise(std::move(*reading.topology)).topology;
  return print(topology) + test::text_of(topology);
}

/// Returns how many files describe a machine.
int check_orders(const std::vector<std::filesystem::path>& files) {
  int machines = 0;
  for (const auto& file : files) {
    const std::string text = test::read_file(file), machine = described(text);
    if (machine.empty()) continue;
    ++machines;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      INFO(file.string() << ", seed " << seed);
      CHECK(described(shuffled(text, seed)) == machine);
    }
  }
  return machines;
}

}  // namespace

TEST_CASE("the order of elements in a file makes no other machine and no other answer",
          "[topology]") {
  CHECK(check_orders(test::golden_topologies()) > 20);
}

TEST_CASE("the order of elements in further files makes no other machine and no other answer",
          "[topology]") {
  const auto files = test::more_topologies();
  CHECK((check_orders(files) > 90 || files.empty()));
}
