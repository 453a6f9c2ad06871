// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/hwloc_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/formats/attributes.h"

namespace khoro::hwloc {
namespace {

using pugi::xml_node;

constexpr std::size_t most_objects = 1024;

struct Matrix {
  xml_node element;
  std::vector<std::string> objects;  // "OSDev:332"
  std::vector<long long> values;

  long long at(std::size_t row, std::size_t column) const {
    return values[row * objects.size() + column];
  }
};

/// The words of all children of that name, which hwloc breaks into pieces.
std::vector<std::string_view> words_of(xml_node matrix, const char* name) {
  std::vector<std::string_view> words;
  for (const xml_node child : matrix.children(name)) {
    std::string_view text = child.child_value();
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
      if (text.empty()) break;
      words.push_back(text.substr(0, text.find_first_of(" \t\r\n")));
      text.remove_prefix(words.back().size());
    }
  }
  return words;
}

/// What a generation of NVLink is called to carry a link and direction, in MB/s.
long long nominal_nvlink(const Site& gpu, long long value) {
  const long long generation = integer_of(gpu.fact("sm")).value_or(0);
  if (generation >= 100) return 50'000;
  if (generation >= 70) return 25'000;
  return generation == 60 || value % 25'000 != 0 ? 20'000 : 25'000;
}

class Connector {
 public:
  Connector(const XmlText& xml, const Objects& objects, Topology& topology, Findings& findings)
      : xml_(xml), objects_(objects), topology_(topology), findings_(findings) {}

  void run() {
    const Matrix nvlink = find("NVLinkBandwidth");
    for (std::size_t i = 0; i < nvlink.objects.size(); ++i)
      for (std::size_t j = i + 1; j < nvlink.objects.size(); ++j) join_nvlink(nvlink, i, j);
    const Matrix xgmi = find("XGMIBandwidth");
    const Matrix hops = find("XGMIHops");
    const bool has_hops = hops.objects == xgmi.objects;
    std::vector<int> packages;
    for (const std::string& object : xgmi.objects) packages.push_back(package_of(site_of(object)));
    for (std::size_t i = 0; i < xgmi.objects.size(); ++i)
      for (std::size_t j = i + 1; j < xgmi.objects.size(); ++j)
        if (!has_hops || hops.at(i, j) == 1) join_xgmi(xgmi, i, j, packages);
    if (!joined_.empty())
      findings_.note(xml_.of(xgmi.element), "XGMIBandwidth",
                     "the same nominal rate for every pair: taken for one link each");
  }

 private:
  Matrix find(std::string_view name) {
    for (const xml_node child : xml_.root().children()) {
      const std::string_view tag = child.name();
      if ((tag == "distances2" || tag == "distances2hetero") &&
          child.attribute("name").value() == name)
        return read(child);
    }
    return {};
  }

  Matrix read(xml_node element) {
    Matrix matrix;
    const std::string type = element.attribute("type").value();
    for (const std::string_view word : words_of(element, "indexes"))
      matrix.objects.push_back(type.empty() ? std::string(word) : fmt::format("{}:{}", type, word));
    const std::size_t count = matrix.objects.size();
    const auto values = words_of(element, "u64values");
    bool sound = count <= most_objects && values.size() == count * count;
    for (const std::string_view value : values) {
      const auto number = integer_of(value);
      sound &= number && *number >= 0;
      matrix.values.push_back(number.value_or(0));
    }
    matrix.element = element;
    if (sound) return matrix;
    findings_.warn(xml_.of(element), element.attribute("name").value(),
                   fmt::format("left out: {} objects and {} values, which must be so many squared",
                               count, values.size()));
    return {};
  }

  /// -1: not part of what was read.
  int site_of(const std::string& object) const {
    const auto found = objects_.find(object);
    return found == objects_.end() ? -1 : found->second;
  }

  /// The lesser of the two directions.
  long long both_ways(const Matrix& matrix, std::size_t i, std::size_t j) {
    const long long forth = matrix.at(i, j);
    const long long back = matrix.at(j, i);
    if (forth != back)
      findings_.warn(xml_.of(matrix.element), matrix.element.attribute("name").value(),
                     fmt::format("{} has {} MB/s to {} and {} back: the lesser counts",
                                 matrix.objects[i], forth, matrix.objects[j], back));
    return std::min(forth, back);
  }

  void join_nvlink(const Matrix& matrix, std::size_t i, std::size_t j) {
    const int one = site_of(matrix.objects[i]);
    const int other = site_of(matrix.objects[j]);
    if (one < 0 || other < 0 || one == other) return;
    const long long value = both_ways(matrix, i, j);
    if (value == 0) return;
    const long long nominal = nominal_nvlink(gpu_of(one, other), value);
    const long long count = std::clamp((value + nominal / 2) / nominal, 1LL, 4096LL);
    if (value != count * nominal)
      findings_.note(xml_.of(matrix.element), "NVLinkBandwidth",
                     fmt::format("{} MB/s between {} and {}: taken for {} links of {}", value,
                                 matrix.objects[i], matrix.objects[j], count, nominal));
    Link link;
    link.kind = LinkKind::nvlink;
    link.count = static_cast<int>(count);
    topology_.connect(one, other, link);
  }

  /// One of the two sites, or any GPU for a link between switches.
  const Site& gpu_of(int one, int other) const {
    static const Site unknown;
    for (const int site : {one, other})
      if (topology_.site(site).kind == SiteKind::gpu) return topology_.site(site);
    const auto gpu = std::find_if(topology_.sites.begin(), topology_.sites.end(),
                                  [](const Site& site) { return site.kind == SiteKind::gpu; });
    return gpu == topology_.sites.end() ? unknown : *gpu;
  }

  void join_xgmi(const Matrix& matrix, std::size_t i, std::size_t j,
                 const std::vector<int>& packages) {
    const int one = packages[i];
    const int other = packages[j];
    if (one < 0 || other < 0 || one == other || both_ways(matrix, i, j) == 0) return;
    if (!joined_.insert(std::minmax<int>(one, other)).second) return;
    Link link;
    link.kind = LinkKind::xgmi;
    topology_.connect(one, other, link);
  }

  /// The parts of a GPU share the links of their package.
  int package_of(int site) const {
    if (site < 0 || !topology_.site(site).fact("busid").empty()) return site;
    for (const Link& link : topology_.links)
      if (link.from == site && link.kind == LinkKind::inside) return link.to;
    return site;
  }

  const XmlText& xml_;
  const Objects& objects_;
  Topology& topology_;
  Findings& findings_;
  std::set<std::pair<int, int>> joined_;
};

}  // namespace

void connect(const XmlText& xml, const Objects& objects, Topology& topology, Findings& findings) {
  Connector(xml, objects, topology, findings).run();
}

}  // namespace khoro::hwloc
