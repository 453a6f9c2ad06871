// SPDX-License-Identifier: Apache-2.0
// NVLink, xGMI and C2C: what cannot be, what is said twice, and switches that are one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "topology/rates.h"
#include "topology/repair/repairs.h"

namespace khoro {
namespace {

/// What texts tell of as a number of equal links between two devices.
bool is_counted(LinkKind kind) noexcept { return is_direct(kind) || kind == LinkKind::c2c; }

/// Why there is no such link; empty if there may be.
std::string impossible(const Repairs& repairs, const Link& link) {
  const Topology& topology = repairs.topology;
  const SiteKind to = topology.site(link.to).kind;
  if (link.from == link.to) return "a link to itself; whom it reaches is not known";
  if (link.count <= 0) return "a link to " + repairs.words_for(link.to) + " with a count of 0";
  if (topology.site(link.from).kind != SiteKind::gpu) return {};  // told of its other end
  if (to == SiteKind::nic || to == SiteKind::port ||
      (to == SiteKind::bridge && link.kind != LinkKind::c2c))
    return "a link to " + repairs.words_for(link.to) + ", which can have none";
  return {};
}

void drop_impossible(Repairs& repairs) {
  const Topology& topology = repairs.topology;
  using Ends = std::tuple<int, int, LinkKind>;
  std::set<Ends> bad;  // both ways
  for (const Link& link : topology.links) {
    if (!is_counted(link.kind)) continue;
    const std::string why = impossible(repairs, link);
    if (why.empty() || !bad.insert({link.from, link.to, link.kind}).second) continue;
    bad.insert({link.to, link.from, link.kind});
    repairs.tell(Severity::warning, link.from, fmt::format("{} {}: ignored", name(link.kind), why));
  }
  std::vector<bool> dropped;
  for (const Link& link : topology.links)
    dropped.push_back(bad.contains({link.from, link.to, link.kind}));
  repairs.remove({}, dropped);
}

/// Links of one kind from one site to another become one.
void join_parallel(Topology& topology) {
  std::map<std::tuple<int, int, LinkKind>, std::size_t> first;
  std::vector<Link> joined;
  for (const Link& link : topology.links) {
    const auto [place, is_new] = first.try_emplace({link.from, link.to, link.kind}, joined.size());
    if (is_new) {
      joined.push_back(link);
    } else if (is_counted(link.kind)) {
      joined[place->second].count += link.count;
      joined[place->second].bytes_per_second += link.bytes_per_second;
    }
  }
  topology.links = std::move(joined);
}

/// Such links work both ways: what only one end tells of is not there.
void make_symmetric(Repairs& repairs) {
  Topology& topology = repairs.topology;
  std::map<std::tuple<int, int, LinkKind>, Link*> by_ends;
  for (Link& link : topology.links) by_ends[{link.from, link.to, link.kind}] = &link;
  std::vector<bool> dropped(topology.links.size());
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    Link& link = topology.links[i];
    if (!is_counted(link.kind)) continue;
    const auto back = by_ends.find({link.to, link.from, link.kind});
    const int other = back == by_ends.end() ? 0 : back->second->count;
    if (other >= link.count) continue;
    repairs.tell(Severity::warning, link.from,
                 fmt::format("{} {} links to {}, which tells of {}: {} used", link.count,
                             name(link.kind), repairs.words_for(link.to), other, other));
    link.count = other;
    link.bytes_per_second = other == 0 ? 0 : back->second->bytes_per_second;
    dropped[i] = other == 0;
  }
  repairs.remove({}, dropped);
}

/// Sites that are one, as the least index of each.
class Joined {
 public:
  explicit Joined(std::size_t size) : to_(size) { std::iota(to_.begin(), to_.end(), 0); }
  int of(int index) const {
    while (to_[static_cast<std::size_t>(index)] != index)
      index = to_[static_cast<std::size_t>(index)];
    return index;
  }
  void join(int one, int other) {
    const int its = of(one), others = of(other);
    to_[static_cast<std::size_t>(std::max(its, others))] = std::min(its, others);
  }

 private:
  std::vector<int> to_;
};

/// The GPUs on each fabric.
std::map<int, std::set<int>> members(const Topology& topology, const Joined& joined) {
  std::map<int, std::set<int>> members;
  for (const Link& link : topology.links)
    if (topology.site(link.to).kind == SiteKind::fabric)
      members[joined.of(link.to)].insert(link.from);
  return members;
}

/// A switch that one GPU alone names, which names no other, while the others of its machine are on
/// one: what it calls the switch is wrong.
void join_strangers(Repairs& repairs, Joined& joined) {
  const auto fabrics = members(repairs.topology, joined);
  for (const auto& [fabric, gpus] : fabrics) {
    if (gpus.size() != 1) continue;
    const int machine = repairs.topology.site(*gpus.begin()).machine;
    for (const auto& [other, its_gpus] : fabrics) {
      if (its_gpus.size() < 2) continue;
      const bool beside = std::any_of(its_gpus.begin(), its_gpus.end(), [&](int gpu) {
        return repairs.topology.site(gpu).machine == machine;
      });
      if (!beside) continue;
      repairs.tell(
          Severity::warning, *gpus.begin(),
          fmt::format("its NVLink switch {} is that of no other GPU: taken for the one that "
                      "the others are on",
                      repairs.topology.site(fabric).fact("busid")));
      joined.join(fabric, other);
      break;
    }
  }
}

}  // namespace

void repair_direct_links(Repairs& repairs) {
  drop_impossible(repairs);
  join_parallel(repairs.topology);
  make_symmetric(repairs);
}

void join_fabrics(Repairs& repairs) {
  Topology& topology = repairs.topology;
  Joined joined(topology.sites.size());
  std::map<int, int> fabric_of;
  for (const Link& link : topology.links)
    if (topology.site(link.to).kind == SiteKind::fabric)
      joined.join(fabric_of.try_emplace(link.from, link.to).first->second, link.to);
  join_strangers(repairs, joined);
  for (Link& link : topology.links) {
    link.from = joined.of(link.from);
    link.to = joined.of(link.to);
  }
  join_parallel(topology);
  std::vector<bool> dropped(topology.sites.size());
  const auto fabrics = members(topology, joined);
  for (const int fabric : topology.sites_of(SiteKind::fabric))
    dropped[static_cast<std::size_t>(fabric)] = !fabrics.contains(fabric);
  repairs.remove(dropped, {});
}

void name_weak_gpus(Repairs& repairs) {
  const Topology& topology = repairs.topology;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<int>> alike;
  for (const int gpu : topology.sites_of(SiteKind::gpu))
    alike[{topology.site(gpu).fact("sm"), topology.site(gpu).fact("gcn")}].push_back(gpu);
  std::vector<double> direct(topology.sites.size()), pci(topology.sites.size());
  for (const Link& link : topology.links) {
    const auto from = static_cast<std::size_t>(link.from);
    if (is_direct(link.kind)) direct[from] += link.bytes_per_second;
    if (link.kind == LinkKind::pci && pci[from] == 0) pci[from] = link.bytes_per_second;
  }
  for (const auto& [kind, gpus] : alike) {
    const auto compare = [&, &gpus = gpus](const std::vector<double>& by_site,
                                           std::string_view what) {
      std::vector<double> rates;
      for (const int gpu : gpus) rates.push_back(by_site[static_cast<std::size_t>(gpu)]);
      std::vector<double> sorted = rates;
      std::sort(sorted.begin(), sorted.end());
      const double usual = sorted[sorted.size() / 2];
      for (std::size_t i = 0; i < gpus.size(); ++i)
        if (rates[i] < usual / 2)
          repairs.tell(Severity::warning, gpus[i],
                       fmt::format("{:.1f} GB/s of {}, its peers have {:.1f}", rates[i] / 1e9, what,
                                   usual / 1e9));
    };
    compare(direct, "direct links");
    compare(pci, "PCIe");
  }
}

}  // namespace khoro
