// SPDX-License-Identifier: Apache-2.0
// PCIe: speeds that are not known or not those of the link, and switches that show as several.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "topology/index.h"
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
      : repairs_(repairs),
        parents_(repairs.topology.parents()),
        children_(parents_.size()),
        up_(parents_.size()) {
    for (std::size_t i = 0; i < parents_.size(); ++i)
      if (parents_[i] >= 0) children_[at(parents_[i])].push_back(static_cast<int>(i));
    for (Link& link : repairs.topology.links) {
      if (link.kind != LinkKind::pci) continue;
      if (parents_[at(link.from)] == link.to) up_[at(link.from)].push_back(&link);
      if (parents_[at(link.to)] == link.from) up_[at(link.to)].push_back(&link);
    }
  }

  void run() {
    for (const int cpu : repairs_.topology.sites_of(SiteKind::cpu))
      for (const int child : children_[at(cpu)]) repair(child);
  }

 private:
  /// A speed, and the site that tells it.
  using Told = std::pair<PciSpeed, int>;

  /// Returns the fastest speed of `site` and what is below it.
  PciSpeed repair(int site);
  /// Of what is of the same kind and hangs off the same: the first of the fastest.
  Told& fastest_beside(int site);
  static void consider(Told& fastest, const PciSpeed& speed, int site);
  void take(int site, const PciSpeed& speed, const std::string& why);

  Repairs& repairs_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
  /// By site: the PCIe links to and from what it hangs off.
  std::vector<std::vector<Link*>> up_;
  std::map<std::pair<int, SiteKind>, Told> fastest_;  // by what they hang off and their kind
};

void PciRepair::consider(Told& fastest, const PciSpeed& speed, int site) {
  const bool is_first = speed.rate == fastest.first.rate && site < fastest.second;
  if (speed.rate > fastest.first.rate || is_first) fastest = {speed, site};
}

PciRepair::Told& PciRepair::fastest_beside(int site) {
  const SiteKind kind = repairs_.topology.site(site).kind;
  const int parent = parents_[at(site)];
  const auto [known, is_new] = fastest_.try_emplace({parent, kind}, PciSpeed(), -1);
  if (is_new)
    for (const int sibling : children_[at(parent)])
      if (const Site& beside = repairs_.topology.site(sibling); beside.kind == kind)
        consider(known->second, told(beside), sibling);
  return known->second;
}

void PciRepair::take(int index, const PciSpeed& speed, const std::string& why) {
  repairs_.tell(Severity::note, index,
                fmt::format("{}: taken for {} x{}", why, speed.link_speed, speed.link_width));
  Site& site = repairs_.site(index);
  site.facts["link_speed"] = speed.link_speed;
  site.facts["link_width"] = speed.link_width;
  consider(fastest_beside(index), speed, index);
}

PciSpeed PciRepair::repair(int index) {
  PciSpeed below;
  for (const int child : children_[at(index)])
    if (const PciSpeed speed = repair(child); speed.rate > below.rate) below = speed;
  const std::vector<Link*>& links = up_[at(index)];
  if (std::none_of(links.begin(), links.end(), [&](Link* link) { return link->from == index; }))
    return below;
  const Site& site = repairs_.topology.site(index);
  PciSpeed own = told(site);
  if (own.rate == 0) {
    const std::string why =
        own.link_speed.empty() && own.link_width.empty()
            ? "says no PCIe speed"
            : fmt::format("PCIe speed \"{}\" x{}", own.link_speed, own.link_width);
    own = below.rate > 0 ? below : fastest_beside(index).first;
    if (own.rate == 0) own = PciSpeed{.rate = usual_pci_rate};
    take(index, own, why);
  } else if (site.kind == SiteKind::bridge && own.rate < below.rate &&
             (own.rate * 4 < below.rate || is_emulated(site))) {
    const std::string why =
        fmt::format("PCIe speed {} x{} above a faster device", own.link_speed, own.link_width);
    own = below;
    take(index, own, why);
  }
  for (Link* const link : links)
    if (link->bytes_per_second == 0) link->bytes_per_second = own.rate;
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
                   "is part of " + repairs.words_for(parents[i]) + ": one switch");
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
