// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "topology/formats/nccl_elements.h"
#include "topology/formats/nccl_links.h"
#include "topology/formats/nccl_rules.h"
#include "topology/formats/nccl_xml.h"

namespace khoro {
namespace {

using namespace nccl;
using pugi::xml_node;

class Reader {
 public:
  explicit Reader(std::string_view text) : xml_(text, findings_) {}

  Reading run() {
    if (!findings_.failed()) system(xml_.root());
    if (!findings_.failed()) finish();
    Reading reading;
    if (!findings_.failed()) reading.topology = std::move(topology_);
    reading.diagnostics = findings_.take();
    return reading;
  }

 private:
  /// Where in the tree an element stands.
  struct Parent {
    int site = 0;
    int cpu = 0;
    int machine = 0;
  };

  void system(xml_node element);
  void cpu(xml_node element);
  void pci(xml_node element, const Parent& parent);
  void register_device(xml_node element, const std::string& id, const Parent& here);
  void gpu_parts(xml_node element, int carrier, const Parent& parent);
  void nic_parts(xml_node element, int site, const Parent& parent);
  void own_nic(xml_node element, const Parent& parent);
  void net(xml_node element, int nic, const Parent& parent);
  void links(xml_node gpu_element, int gpu, const Parent& parent);
  void finish();

  int add(SiteKind kind, const Parent& parent, std::string_view label, Facts facts);
  bool is_skipped(xml_node pci_element);
  Facts facts(xml_node element, std::span<const AttributeRule> rules, const std::string& place);
  void warn(xml_node element, const std::string& place, std::string message) {
    findings_.warn(xml_.of(element), place, std::move(message));
  }
  void note(xml_node element, const std::string& place, std::string message) {
    findings_.note(xml_.of(element), place, std::move(message));
  }

  Findings findings_;
  XmlText xml_;
  Topology topology_;
  SiteNames names_;
  std::map<std::string, int> machines_;  // by the text of host_hash
  std::map<std::pair<int, std::string>, int> numas_;
  Devices devices_;
  std::vector<LinkClaim> claims_;
  struct SwitchLink {
    xml_node element;
    int site;
  };
  std::vector<SwitchLink> switch_links_;
};

int Reader::add(SiteKind kind, const Parent& parent, std::string_view label, Facts facts) {
  return topology_.add(
      {kind, names_.make(kind, parent.machine, label), parent.machine, std::move(facts)});
}

Facts Reader::facts(xml_node element, std::span<const AttributeRule> rules,
                    const std::string& place) {
  Facts facts = read_attributes(xml_, element, rules, place, findings_);
  facts.erase("keep");  // a mark of the library that wrote the file
  return facts;
}

void Reader::system(xml_node element) {
  static constexpr std::array<std::string_view, 1> known = {"cpu"};
  if (!is(element, "system")) {
    findings_.error(
        xml_.of(element), "",
        fmt::format("a root element <{}>: a topology has <system>", shown(element.name())));
    return;
  }
  const Facts of_system = facts(element, system_rules, "system");
  const auto version = of_system.find("version");
  if (version == of_system.end())
    warn(element, "system", "no version: read as version 1, but NCCL refuses such a file");
  else if (version->second != "1" && version->second != "2")
    findings_.error(
        xml_.of(element, "version"), "system",
        fmt::format("version \"{}\": versions 1 and 2 are known", shown(version->second)));
  if (const Position loose = xml_.first_loose_tag(); loose.line != 0)
    findings_.note(loose, "system", "NCCL reads one blank between attributes and nothing else");
  name_strangers(xml_, element, "system", known, findings_);
  if (children(element, "cpu") == 0)
    findings_.error(xml_.of(element), "system", "no <cpu> in it: a machine has at least one");
  for (const xml_node child : element.children("cpu")) cpu(child);
}

void Reader::cpu(xml_node element) {
  static constexpr std::array<std::string_view, 2> known = {"pci", "nic"};
  const std::string_view number = element.attribute("numaid").value();
  const std::string place = fmt::format("cpu {}", number.empty() ? "-1" : shown(number));
  Facts of_cpu = facts(element, cpu_rules, place);
  of_cpu.try_emplace("numaid", "-1");
  if (!element.attribute("numaid")) warn(element, place, "no numaid: its NUMA node is unknown");
  if (!element.attribute("arch"))
    warn(element, place,
         "no arch: links between CPUs get a cautious rate; say x86_64, arm64 or "
         "ppc64");
  const std::string host = of_cpu.count("host_hash") != 0 ? of_cpu["host_hash"] : "";
  Parent here;
  here.machine = machines_.try_emplace(host, static_cast<int>(machines_.size())).first->second;
  if (!numas_.try_emplace({here.machine, of_cpu["numaid"]}, 0).second && of_cpu["numaid"] != "-1")
    warn(element, place, "a second <cpu> of this numaid: kept apart");
  here.site = here.cpu = add(SiteKind::cpu, here, of_cpu["numaid"], of_cpu);
  name_strangers(xml_, element, place, known, findings_);
  for (const xml_node child : element.children()) {
    if (is(child, "pci")) pci(child, here);
    if (is(child, "nic")) own_nic(child, here);
  }
}

bool Reader::is_skipped(xml_node pci_element) {
  for (const xml_node gpu : pci_element.children("gpu"))
    if (integer_of(gpu.attribute("dev").value()) == -1) {
      warn(gpu, fmt::format("pci {}", shown(pci_element.attribute("busid").value())),
           "dev -1: a GPU that nobody uses, left out with all that hangs off it");
      return true;
    }
  return false;
}

void Reader::pci(xml_node element, const Parent& parent) {
  static constexpr std::array<std::string_view, 4> known = {"pci", "gpu", "nic", "pcilink"};
  std::string place = fmt::format("pci {}", shown(element.attribute("busid").value()));
  const auto id = bus_id_in(xml_, element, place, findings_);
  if (is_skipped(element)) return;
  Facts of_pci = facts(element, pci_rules, place);
  if (id) of_pci["busid"] = *id;
  const SiteKind kind = kind_of(element, of_pci);
  if (kind == SiteKind::bridge && of_pci.find("class") == of_pci.end())
    warn(element, place, "no class and nothing inside that would tell: taken for a bridge");
  Parent here = parent;
  here.site = add(kind, parent, id.value_or(""), std::move(of_pci));
  topology_.connect(here.site, parent.site, {0, 0, LinkKind::pci});
  if (id) register_device(element, *id, here);
  name_strangers(xml_, element, place, known, findings_);
  if (children(element, "gpu") > 1)
    note(element, place, "several <gpu>: parts of one device, which share its bus and its links");
  gpu_parts(element, here.site, here);
  nic_parts(element, here.site, here);
  for (const xml_node child : element.children()) {
    if (is(child, "pcilink")) switch_links_.push_back({child, here.site});
    if (is(child, "pci")) pci(child, here);
  }
}

void Reader::register_device(xml_node element, const std::string& id, const Parent& here) {
  const auto [device, is_new] = devices_.try_emplace({here.machine, id}, here.site);
  if (is_new) return;
  const Site& site = topology_.site(here.site);
  const Site& first = topology_.site(device->second);
  const std::string message =
      fmt::format("{} has this bus id already: kept apart, links lead to that one", first.name);
  // Bridges are often cut short in files made by hand; nothing goes wrong with them.
  if (site.kind == SiteKind::bridge && first.kind == SiteKind::bridge)
    note(element, site.name, message);
  else
    warn(element, site.name, message);
}

void Reader::gpu_parts(xml_node element, int carrier, const Parent& parent) {
  const bool several = children(element, "gpu") > 1;
  for (const xml_node child : element.children("gpu")) {
    const std::string bus_id(topology_.site(carrier).fact("busid"));
    const std::string place = fmt::format("gpu {}", bus_id);
    Facts of_gpu = facts(child, gpu_rules, place);
    if (!child.attribute("dev")) note(child, place, "no dev");
    int gpu = carrier;
    if (several) {
      gpu = add(SiteKind::gpu, parent, bus_id, std::move(of_gpu));
      topology_.connect(gpu, carrier, {0, 0, LinkKind::inside});
      // Links lead to the first one: they name no more than the function.
      const auto device = devices_.find({parent.machine, bus_id});
      if (device != devices_.end() && device->second == carrier) device->second = gpu;
    } else {
      topology_.sites[static_cast<std::size_t>(gpu)].facts.merge(of_gpu);
    }
    links(child, gpu, parent);
  }
}

void Reader::nic_parts(xml_node element, int site, const Parent& parent) {
  for (const xml_node child : element.children("nic")) {
    if (topology_.site(site).kind != SiteKind::nic) {
      own_nic(child, parent);
      continue;
    }
    for (const xml_node port : child.children("net")) net(port, site, parent);
  }
}

void Reader::own_nic(xml_node element, const Parent& parent) {
  static constexpr std::array<std::string_view, 1> known = {"net"};
  const std::string label = element.child("net").attribute("name").value();
  Facts of_nic = facts(element, {}, fmt::format("nic {}", shown(label)));
  const int nic = add(SiteKind::nic, parent, label, std::move(of_nic));
  topology_.connect(nic, parent.site, {0, 0, LinkKind::inside});
  name_strangers(xml_, element, fmt::format("nic {}", shown(label)), known, findings_);
  for (const xml_node port : element.children("net")) net(port, nic, parent);
}

void Reader::net(xml_node element, int nic, const Parent& parent) {
  const std::string label = element.attribute("name").value();
  const std::string place = fmt::format("net {}", shown(label));
  Facts of_net = facts(element, net_rules, place);
  if (!element.attribute("dev")) warn(element, place, "no dev: kept, but NCCL ignores such a net");
  name_strangers(xml_, element, place, {}, findings_);
  const int port = add(SiteKind::port, parent, label, std::move(of_net));
  topology_.connect(nic, port, {0, 0, LinkKind::port});
}

void Reader::links(xml_node gpu_element, int gpu, const Parent& parent) {
  static constexpr std::array<std::string_view, 3> known = {"nvlink", "xgmi", "c2c"};
  name_strangers(xml_, gpu_element, topology_.site(gpu).name, known, findings_);
  for (const xml_node child : gpu_element.children()) {
    if (std::find(known.begin(), known.end(), child.name()) == known.end()) continue;
    LinkClaim claim =
        read_claim(xml_, child, topology_.sites[static_cast<std::size_t>(gpu)], findings_);
    claim.gpu = gpu;
    claim.cpu = parent.cpu;
    claims_.push_back(std::move(claim));
  }
}

void Reader::finish() {
  std::set<std::pair<int, int>> joined;  // both ends say so
  for (const SwitchLink& of_switch : switch_links_) {
    const Site& site = topology_.site(of_switch.site);
    const Facts of_link = facts(of_switch.element, pcilink_rules, site.name);
    const auto target = of_link.find("target");
    const auto id = bus_id_of(target == of_link.end() ? "" : target->second);
    const auto device = devices_.find({site.machine, id.value_or("")});
    const bool leads =
        device != devices_.end() && topology_.site(device->second).kind == SiteKind::bridge;
    if (!leads || device->second == of_switch.site)
      warn(of_switch.element, site.name, "<pcilink> left out: its target is no other switch");
    else if (joined.insert(std::minmax<int>(of_switch.site, device->second)).second)
      topology_.connect(of_switch.site, device->second, {0, 0, LinkKind::inside});
  }
  connect(claims_, devices_, names_, topology_, findings_);
  if (!place_ranks(topology_))
    findings_.warn(xml_.of(xml_.root()), "system",
                   "two GPUs of one rank: in the order of the text");
}

}  // namespace

Reading read_nccl_xml(std::string_view text) { return Reader(text).run(); }

}  // namespace khoro
