// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/hwloc_xml.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "topology/formats/chips.h"
#include "topology/formats/hwloc_links.h"
#include "topology/formats/hwloc_objects.h"
#include "topology/formats/raw_sites.h"

namespace khoro {
namespace {

using namespace hwloc;
using pugi::xml_node;

constexpr std::size_t most_numa_nodes = 4096;

class Reader {
 public:
  explicit Reader(std::string_view text) : xml_(text, findings_) {}

  Reading run() {
    if (!findings_.failed()) read_all();
    Reading reading;
    if (!findings_.failed()) reading.topology = std::move(topology_);
    reading.diagnostics = findings_.take();
    return reading;
  }

 private:
  /// Where in the tree of buses an object hangs.
  struct Bus {
    int site = 0;
    /// Bridges above it: root ports at 0, the upper ports of switches at odd numbers, their lower
    /// ports at even ones.
    int bridges = 0;
    int machine = 0;
  };

  void read_all();
  void cpus(xml_node object, int machine);
  void add_cpu(xml_node numa_node, int machine);
  void devices(xml_node object, int machine);
  void bus(xml_node object, const Bus& above);
  void device(xml_node object, const Bus& above);
  void gpu(xml_node object, Facts facts, const Bus& above);
  void nic(xml_node object, Facts facts, const Bus& above);
  bool has_use(xml_node object) const;
  int cpu_around(xml_node object);

  int add(SiteKind kind, int machine, std::string_view label, Facts facts) {
    return topology_.add({kind, names_.make(kind, machine, label), machine, std::move(facts)});
  }
  void hang(int site, int above, LinkKind kind) { topology_.connect(site, above, {0, 0, kind}); }
  static std::string key(xml_node object) {
    return fmt::format("{}:{}", object.attribute("type").value(),
                       object.attribute("gp_index").value());
  }

  Findings findings_;
  XmlText xml_;
  Topology topology_;
  SiteNames names_;
  Objects objects_;
  /// The CPUs inside of an object, by its place in the text: the first of them, and how many.
  std::map<std::ptrdiff_t, std::pair<int, int>> cpus_inside_;
};

bool is_io(xml_node object) {
  return is_type(object, "Bridge") || is_type(object, "PCIDev") || is_type(object, "OSDev");
}

void Reader::read_all() {
  const xml_node root = xml_.root();
  const std::string_view version = root.attribute("version").value();
  if (root.name() != std::string_view("topology"))
    findings_.error(
        xml_.of(root), "",
        fmt::format("a root element <{}>: hwloc writes <topology>", shown(root.name())));
  if (!version.empty() &&
      (version.size() < 2 || version[1] != '.' || version[0] < '1' || version[0] > '3'))
    findings_.error(xml_.of(root, "version"), "topology",
                    fmt::format("version \"{}\": versions 1 to 3 are known; export it again with "
                                "an older hwloc, or as \"v2\"",
                                shown(version)));
  int machines = 0;
  for (const xml_node object : root.children("object")) cpus(object, machines++);
  if (machines == 0) findings_.error(xml_.of(root), "topology", "no <object> in it: no machine");
  if (findings_.failed()) return;
  machines = 0;
  for (const xml_node object : root.children("object")) devices(object, machines++);
  connect(xml_, objects_, topology_, findings_);
  place_ranks(topology_);
}

void Reader::cpus(xml_node object, int machine) {
  const std::size_t before = topology_.sites.size();
  const bool is_node = is_type(object, "NUMANode");
  if (is_node && has_cpus(object))
    add_cpu(object, machine);
  else if (is_node)
    findings_.note(xml_.of(object),
                   fmt::format("NUMA node {}", object.attribute("os_index").value()),
                   "no CPUs: memory of a device, no place for host threads");
  for (const xml_node child : object.children("object"))
    if (!is_io(child)) cpus(child, machine);
  // One without NUMA nodes is one itself.
  if (object.parent() == xml_.root() && topology_.sites.size() == before) add_cpu(object, machine);
  if (const auto inside = cpus_inside_.find(object.offset_debug());
      inside != cpus_inside_.end() && (is_type(object, "Package") || is_type(object, "Machine")))
    objects_.emplace(key(object), inside->second.first);
}

void Reader::add_cpu(xml_node numa_node, int machine) {
  if (topology_.sites.size() > most_numa_nodes) return;
  if (topology_.sites.size() == most_numa_nodes)
    findings_.error(xml_.of(numa_node), "",
                    fmt::format("more than {} NUMA nodes", most_numa_nodes));
  Facts facts = cpu_facts(numa_node);
  const int site = add(SiteKind::cpu, machine, facts["numaid"], facts);
  for (xml_node above = numa_node; above; above = above.parent()) {
    auto& inside = cpus_inside_.try_emplace(above.offset_debug(), site, 0).first->second;
    ++inside.second;
  }
}

int Reader::cpu_around(xml_node object) {
  xml_node above = object.parent();
  while (cpus_inside_.count(above.offset_debug()) == 0) above = above.parent();
  const auto& [first, count] = cpus_inside_.at(above.offset_debug());
  if (count > 1 && has_use(object))
    findings_.note(xml_.of(object), "bus",
                   fmt::format("near {} NUMA nodes alike: taken for one of {}", count,
                               topology_.site(first).name));
  return first;
}

void Reader::devices(xml_node object, int machine) {
  for (const xml_node child : object.children("object")) {
    if (is_io(child))
      bus(child, {cpu_around(child), 0, machine});
    else
      devices(child, machine);
  }
}

void Reader::bus(xml_node object, const Bus& above) {
  if (!has_use(object)) return;
  if (is_type(object, "PCIDev")) return device(object, above);
  if (!is_type(object, "Bridge")) return;
  Bus below = above;
  if (object.attribute("bridge_type").value() != std::string_view("0-1")) {
    ++below.bridges;
    const auto facts = above.bridges % 2 == 1 ? pci_facts(object) : std::nullopt;
    if (facts) {
      below.site = add(SiteKind::bridge, above.machine, facts->at("busid"), *facts);
      hang(below.site, above.site, LinkKind::pci);
    }
  }
  for (const xml_node child : object.children("object")) bus(child, below);
}

bool Reader::has_use(xml_node object) const {
  if (is_type(object, "PCIDev")) {
    const DeviceKind kind = kind_of(object);
    if (kind != DeviceKind::nic) return kind != DeviceKind::other;
    return !ports_of(object).empty();
  }
  for (const xml_node child : object.children("object"))
    if (has_use(child)) return true;
  return false;
}

void Reader::device(xml_node object, const Bus& above) {
  auto facts = pci_facts(object);
  if (!facts) {
    findings_.warn(xml_.of(object, "pci_busid"), key(object), "left out: no usable pci_busid");
    return;
  }
  const std::string bus_id = facts->at("busid");
  switch (kind_of(object)) {
    case DeviceKind::gpu:
      return gpu(object, *std::move(facts), above);
    case DeviceKind::nic:
      return nic(object, *std::move(facts), above);
    default:
      // A switch of NVLinks is reached over them; its own bus carries no data.
      objects_[key(object)] = add(SiteKind::fabric, above.machine, bus_id, {{"busid", bus_id}});
  }
}

void Reader::gpu(xml_node object, Facts facts, const Bus& above) {
  const auto parts = gpus_of(object);
  const bool several = parts.size() > 1;
  const std::string bus_id = facts.at("busid");
  const Chip chip = chip_of(facts["vendor"], facts["device"]);
  const int carrier =
      add(several ? SiteKind::bridge : SiteKind::gpu, above.machine, bus_id, std::move(facts));
  hang(carrier, above.site, LinkKind::pci);
  objects_[key(object)] = carrier;
  for (const auto& part : parts) {
    Facts of_part = gpu_facts(part);
    if (!chip.sm.empty()) of_part.emplace("sm", chip.sm);
    if (!chip.gcn.empty()) of_part.emplace("gcn", chip.gcn);
    int site = carrier;
    if (several) {
      site = add(SiteKind::gpu, above.machine, bus_id, std::move(of_part));
      hang(site, carrier, LinkKind::inside);
    } else {
      topology_.sites[static_cast<std::size_t>(site)].facts.merge(of_part);
    }
    for (const xml_node os_device : part) objects_[key(os_device)] = site;
  }
}

void Reader::nic(xml_node object, Facts facts, const Bus& above) {
  const std::string bus_id = facts.at("busid");
  const int site = add(SiteKind::nic, above.machine, bus_id, std::move(facts));
  hang(site, above.site, LinkKind::pci);
  for (Facts& of_port : ports_of(object)) {
    const std::string label = of_port["name"];
    hang(site, add(SiteKind::port, above.machine, label, std::move(of_port)), LinkKind::port);
  }
}

}  // namespace

Reading read_hwloc_xml(std::string_view text) { return Reader(text).run(); }

}  // namespace khoro
