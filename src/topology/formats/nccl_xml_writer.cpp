// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/error.h"
#include "topology/formats/nccl_rules.h"
#include "topology/formats/nccl_xml.h"
#include "topology/formats/xml_writer.h"

namespace khoro {
namespace {

using namespace nccl;

/// What NCCL's parser keeps of an element, and how deep ours reads.
constexpr std::size_t most_attributes = 16;
constexpr int most_depth = 120;

template <std::size_t size>
bool knows(const std::array<AttributeRule, size>& rules, std::string_view key) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const auto& rule) { return rule.name == key; });
}

/// Known attributes in their order, then the others.
template <std::size_t size>
Attributes ordered(const std::array<AttributeRule, size>& rules, const Facts& facts) {
  Attributes attributes;
  for (const AttributeRule& rule : rules)
    if (const auto fact = facts.find(rule.name); fact != facts.end()) attributes.push_back(*fact);
  for (const auto& fact : facts)
    if (!knows(rules, fact.first) && attributes.size() < most_attributes)
      attributes.push_back(fact);
  return attributes;
}

/// A PCI function and a GPU in it share a site: its facts, taken apart.
Facts part_of(const Site& gpu, bool of_pci) {
  Facts part;
  for (const auto& [key, value] : gpu.facts)
    if (knows(pci_rules, key) == of_pci && key != "c2c_bw") part.emplace(key, value);
  return part;
}

class Writer {
 public:
  explicit Writer(const Topology& topology)
      : topology_(topology), links_(topology.sites.size()), written_(topology.sites.size()) {
    for (std::size_t i = 0; i < topology.links.size(); ++i)
      links_[std::size_t(topology.links[i].from)].push_back(i);
    name_hosts();
  }

  std::string run() {
    const bool rccl = std::any_of(topology_.links.begin(), topology_.links.end(),
                                  [](const Link& link) { return link.kind == LinkKind::xgmi; });
    xml_.begin("system", {{"version", rccl ? "2" : "1"}});
    for (const int cpu : topology_.sites_of(SiteKind::cpu)) write_cpu(cpu);
    for (std::size_t i = 0; i < topology_.sites.size(); ++i)
      if (!written_[i] && is_device(topology_.sites[i])) write_homeless(static_cast<int>(i));
    xml_.end();
    return xml_.take();
  }

 private:
  static bool is_device(const Site& site) {
    return site.kind == SiteKind::bridge || site.kind == SiteKind::gpu ||
           site.kind == SiteKind::nic;
  }
  static bool is_part(const Site& site) {
    return site.fact("busid").empty() && (site.kind == SiteKind::gpu || site.kind == SiteKind::nic);
  }

  void name_hosts() {
    std::map<int, std::string> names;
    std::set<std::string_view> distinct;
    bool clear = true;
    for (const Site& site : topology_.sites) {
      if (site.kind != SiteKind::cpu) continue;
      const std::string_view hash = site.fact("host_hash");
      const auto [known, is_new] = names.try_emplace(site.machine, hash);
      clear &= known->second == hash;
      if (is_new) clear &= distinct.insert(hash).second;
    }
    if (!clear)
      for (auto& [machine, host] : names) host = fmt::format("0x{:x}", machine + 1);
    hosts_ = std::move(names);
  }

  std::vector<int> unwritten(int from, LinkKind kind) {
    std::vector<int> found;
    for (const std::size_t i : links_[std::size_t(from)]) {
      const Link& link = topology_.links[i];
      if (link.kind == kind && !written_[std::size_t(link.to)]) found.push_back(link.to);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void write_cpu(int cpu) {
    const Site& site = topology_.site(cpu);
    Facts facts = site.facts;
    facts.try_emplace("numaid", "-1");
    if (const std::string& host = hosts_[site.machine]; !host.empty()) facts["host_hash"] = host;
    written_[std::size_t(cpu)] = true;
    xml_.begin("cpu", ordered(cpu_rules, facts));
    std::vector<int> devices = unwritten(cpu, LinkKind::pci);
    const std::vector<int> inside = unwritten(cpu, LinkKind::inside);
    devices.insert(devices.end(), inside.begin(), inside.end());
    std::sort(devices.begin(), devices.end());
    for (const int device : devices)
      if (is_device(topology_.site(device))) write_device(device, 1);
    xml_.end();
  }

  /// A device that hangs off no CPU.
  void write_homeless(int device) {
    Attributes attributes = {{"numaid", "-1"}};
    const std::string& host = hosts_[topology_.site(device).machine];
    if (!host.empty()) attributes.emplace_back("host_hash", host);
    xml_.begin("cpu", attributes);
    write_device(device, 1);
    xml_.end();
  }

  void write_device(int device, int depth) {
    const Site& site = topology_.site(device);
    if (depth > most_depth)
      throw Error(Code::invalid_argument,
                  fmt::format("{}: hangs off more than {} bridges", site.name, most_depth));
    if (site.kind == SiteKind::nic && is_part(site)) return write_nic(device);
    written_[std::size_t(device)] = true;
    Facts facts = site.kind == SiteKind::gpu ? part_of(site, true) : site.facts;
    facts["busid"] = bus_id(device);
    xml_.begin("pci", ordered(pci_rules, facts));
    write_parts(device);
    for (const int child : unwritten(device, LinkKind::pci))
      if (is_device(topology_.site(child))) write_device(child, depth + 1);
    xml_.end();
  }

  /// What is inside a PCI function.
  void write_parts(int device) {
    const Site& site = topology_.site(device);
    const std::string_view text = site.fact("class");
    if (site.kind == SiteKind::gpu && !is_promise(device)) write_gpu(device, part_of(site, false));
    const std::vector<int> parts = unwritten(device, LinkKind::inside);
    for (const int part : parts)
      if (is_part(topology_.site(part)) && topology_.site(part).kind == SiteKind::gpu)
        write_gpu(part, topology_.site(part).facts);
    if (site.kind == SiteKind::nic &&
        (!unwritten(device, LinkKind::port).empty() || text.substr(0, 4) != "0x02"))
      write_ports(device, {});
    for (const int part : parts)
      if (is_part(topology_.site(part)) && topology_.site(part).kind == SiteKind::nic)
        write_nic(part);
    for (const std::size_t i : links_[std::size_t(device)]) {
      const Link& link = topology_.links[i];
      if (site.kind == SiteKind::bridge && link.kind == LinkKind::inside &&
          topology_.site(link.to).kind == SiteKind::bridge)
        xml_.element("pcilink", {{"target", bus_id(link.to)}});
    }
  }

  /// A GPU of which no more is known than its PCI function, as templates have it.
  bool is_promise(int gpu) const {
    const std::string_view text = topology_.site(gpu).fact("class");
    const bool by_class = text.substr(0, 4) == "0x03" || text.substr(0, 4) == "0x12";
    const auto& links = links_[std::size_t(gpu)];
    return by_class && part_of(topology_.site(gpu), false).empty() &&
           std::none_of(links.begin(), links.end(), [&](std::size_t i) {
             const LinkKind kind = topology_.links[i].kind;
             return kind == LinkKind::nvlink || kind == LinkKind::xgmi || kind == LinkKind::c2c;
           });
  }

  void write_gpu(int gpu, Facts facts) {
    written_[std::size_t(gpu)] = true;
    facts.erase("c2c_bw");
    xml_.begin("gpu", ordered(gpu_rules, facts));
    for (const std::size_t i : links_[std::size_t(gpu)]) write_link(topology_.links[i]);
    xml_.end();
  }

  void write_link(const Link& link) {
    const Site& other = topology_.site(link.to);
    const std::string count = std::to_string(link.count);
    if (link.kind == LinkKind::c2c) {
      Attributes attributes = {{"count", count}};
      const std::string_view rate = topology_.site(link.from).fact("c2c_bw");
      if (!rate.empty()) attributes.insert(attributes.begin(), {"bw", std::string(rate)});
      xml_.element("c2c", attributes);
    } else if (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi) {
      std::string target = "0000:00:00.0";
      std::string target_class = "0x068001";
      if (other.kind == SiteKind::gpu) {
        target = bus_id(link.to);
        target_class = other.fact("class").empty() ? "0x030200" : other.fact("class");
      } else if (other.kind == SiteKind::fabric) {
        target = other.fact("busid").empty() ? invisible : other.fact("busid");
        target_class = "0x068000";
      }
      xml_.element(name(link.kind),
                   {{"target", target}, {"count", count}, {"tclass", target_class}});
    }
  }

  void write_nic(int nic) { write_ports(nic, ordered(system_rules, topology_.site(nic).facts)); }

  void write_ports(int nic, const Attributes& attributes) {
    written_[std::size_t(nic)] = true;
    xml_.begin("nic", attributes);
    for (const int port : unwritten(nic, LinkKind::port)) {
      written_[std::size_t(port)] = true;
      xml_.element("net", ordered(net_rules, topology_.site(port).facts));
    }
    xml_.end();
  }

  /// Of the PCI function that a site is or is in; one is made up where there is none.
  std::string bus_id(int device) {
    if (const auto fact = topology_.site(device).fact("busid"); !fact.empty())
      return std::string(fact);
    for (const std::size_t i : links_[std::size_t(device)]) {
      const Link& link = topology_.links[i];
      const Site& carrier = topology_.site(link.to);
      if (link.kind == LinkKind::inside && carrier.kind == SiteKind::bridge &&
          !carrier.fact("busid").empty())
        return std::string(carrier.fact("busid"));
    }
    const auto number = static_cast<int>(made_up_.size());
    return made_up_
        .try_emplace(device, fmt::format("ffff:{:02x}:{:02x}.0", (number / 32) % 256, number % 32))
        .first->second;
  }

  const Topology& topology_;
  std::vector<std::vector<std::size_t>> links_;  // by the site where they begin
  std::vector<char> written_;
  std::map<int, std::string> hosts_;  // by machine
  std::map<int, std::string> made_up_;
  XmlWriter xml_;
};

}  // namespace

std::string write_nccl_xml(const Topology& topology) { return Writer(topology).run(); }

}  // namespace khoro
