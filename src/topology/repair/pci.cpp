// SPDX-License-Identifier: Apache-2.0
// PCIe: speeds that are not known or not those of the link, and switches that show as several.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "topology/rates.h"
#include "topology/repair/repairs.h"

namespace khoro {
namespace {

/// Bridges of virtual machines and of switches whose upstream port tells something made up.
bool is_emulated(const Site& bridge) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> bridges = {
      {{"0x104c", "0x8232"}, {"0x1b36", ""}, {"0x15b3", "0x197c"}, {"0xffff", ""}}};
  return std::any_of(bridges.begin(), bridges.end(), [&](const auto& ids) {
    return bridge.fact("vendor") == ids.first &&
           (ids.second.empty() || bridge.fact("device") == ids.second);
  });
}

struct PciSpeed {
  std::string link_speed = "8.0 GT/s PCIe", link_width = "16";
  double rate = 0;
};

PciSpeed told(const Site& site) {
  return {std::string(site.fact("link_speed")), std::string(site.fact("link_width")),
          pci_rate(site.fact("link_speed"), site.fact("link_width")).value_or(0)};
}

class PciRepair {
 public:
  explicit PciRepair(Repairs& repairs)
      : repairs_(repairs), parents_(repairs.topology.parents()), children_(parents_.size()) {
    for (std::size_t i = 0; i < parents_.size(); ++i)
      if (parents_[i] >= 0)
        children_[static_cast<std::size_t>(parents_[i])].push_back(static_cast<int>(i));
  }

  void run() {
    for (const int cpu : repairs_.topology.sites_of(SiteKind::cpu))
      for (const int child : children(cpu)) repair(child);
  }

 private:
  const std::vector<int>& children(int site) const {
    return children_[static_cast<std::size_t>(site)];
  }
  bool on_pci(int site) const;
  /// Returns the fastest speed of `site` and what is below it.
  PciSpeed repair(int site);
  /// Of what is of the same kind and hangs off the same.
  PciSpeed fastest_beside(int site) const;
  void set(int site, const PciSpeed& speed);
  void take(int site, const PciSpeed& speed, const std::string& why);

  Repairs& repairs_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
};

bool PciRepair::on_pci(int site) const {
  const std::vector<int> up = repairs_.leaving(site, LinkKind::pci);
  return std::any_of(up.begin(), up.end(), [&](int link) {
    return repairs_.topology.links[static_cast<std::size_t>(link)].to ==
           parents_[static_cast<std::size_t>(site)];
  });
}

PciSpeed PciRepair::fastest_beside(int site) const {
  PciSpeed fastest;
  for (const int sibling : children(parents_[static_cast<std::size_t>(site)])) {
    const Site& beside = repairs_.topology.site(sibling);
    if (beside.kind != repairs_.topology.site(site).kind) continue;
    if (const PciSpeed speed = told(beside); speed.rate > fastest.rate) fastest = speed;
  }
  return fastest;
}

void PciRepair::set(int site, const PciSpeed& speed) {
  const int parent = parents_[static_cast<std::size_t>(site)];
  for (Link& link : repairs_.topology.links) {
    const bool up = link.from == site && link.to == parent;
    const bool down = link.from == parent && link.to == site;
    if (link.kind == LinkKind::pci && (up || down) && link.bytes_per_second == 0)
      link.bytes_per_second = speed.rate;
  }
}

void PciRepair::take(int index, const PciSpeed& speed, const std::string& why) {
  Site& site = repairs_.site(index);
  repairs_.tell(Severity::note, index,
                fmt::format("{}: taken for {} x{}", why, speed.link_speed, speed.link_width));
  site.facts["link_speed"] = speed.link_speed;
  site.facts["link_width"] = speed.link_width;
}

PciSpeed PciRepair::repair(int index) {
  PciSpeed below;
  for (const int child : children(index))
    if (const PciSpeed speed = repair(child); speed.rate > below.rate) below = speed;
  if (!on_pci(index)) return below;
  const Site& site = repairs_.topology.site(index);
  PciSpeed own = told(site);
  if (own.rate == 0) {
    const std::string why =
        own.link_speed.empty() && own.link_width.empty()
            ? "says no PCIe speed"
            : fmt::format("PCIe speed \"{}\" x{}", own.link_speed, own.link_width);
    own = below.rate > 0 ? below : fastest_beside(index);
    if (own.rate == 0) own = PciSpeed{.rate = usual_pci_rate};
    take(index, own, why);
  } else if (site.kind == SiteKind::bridge && own.rate < below.rate &&
             (own.rate * 4 < below.rate || is_emulated(site))) {
    const std::string why =
        fmt::format("PCIe speed {} x{} above a faster device", own.link_speed, own.link_width);
    own = below;
    take(index, own, why);
  }
  set(index, own);
  return own.rate < below.rate ? below : own;
}

/// A switch of these shows its parts as bridges behind a bridge of the same kind.
bool is_part_of(const Site& child, const Site& parent) {
  if (child.kind != SiteKind::bridge || parent.kind != SiteKind::bridge) return false;
  if (child.fact("vendor") != "0x1000") return false;
  if (child.fact("device") != "0xc010" && child.fact("device") != "0xc030") return false;
  static constexpr std::array<std::string_view, 4> ids = {"vendor", "device", "subsystem_vendor",
                                                          "subsystem_device"};
  return std::all_of(ids.begin(), ids.end(),
                     [&](auto id) { return child.fact(id) == parent.fact(id); });
}

}  // namespace

void repair_pci(Repairs& repairs) { PciRepair(repairs).run(); }

void flatten_switches(Repairs& repairs) {
  Topology& topology = repairs.topology;
  const std::vector<int> parents = repairs.topology.parents();
  std::vector<bool> flat(topology.sites.size());
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (parents[i] >= 0 && is_part_of(topology.sites[i], topology.site(parents[i]))) {
      flat[i] = true;
      repairs.tell(Severity::note, static_cast<int>(i),
                   "is part of " + words_for(topology, parents[i]) + ": one switch");
    }
  const std::function<int(int)> whole = [&](int site) {
    return flat[static_cast<std::size_t>(site)] ? whole(parents[static_cast<std::size_t>(site)])
                                                : site;
  };
  for (Link& link : topology.links) {
    link.from = whole(link.from);
    link.to = whole(link.to);
  }
  std::erase_if(topology.links, [](const Link& link) { return link.from == link.to; });
  repairs.remove(flat, {});
}

}  // namespace khoro
