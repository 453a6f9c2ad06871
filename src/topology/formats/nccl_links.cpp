// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/nccl_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "topology/formats/nccl_rules.h"

namespace khoro::nccl {
namespace {

/// Links of one kind from a GPU to a site, as the GPU says.
using Pair = std::tuple<LinkKind, int, int>;

class Connector {
 public:
  Connector(const Devices& devices, SiteNames& names, Topology& topology, Findings& findings)
      : devices_(devices), names_(names), topology_(topology), findings_(findings) {}

  void run(const std::vector<LinkClaim>& claims) {
    for (const LinkClaim& claim : claims)
      if (const auto other = other_end(claim)) add(claim, *other);
    for (const auto& [claim, pair] : first_) join(*claim, pair);
  }

 private:
  void add(const LinkClaim& claim, int other) {
    const Pair pair{claim.kind, claim.gpu, other};
    const auto [count, is_new] = counts_.try_emplace(pair, 0);
    count->second += claim.count;
    if (is_new) first_.emplace_back(&claim, pair);
  }

  /// Where a link leads; nothing if it cannot lead anywhere.
  std::optional<int> other_end(const LinkClaim& claim) {
    if (claim.count == 0) return dropped(claim, "count 0 says that there is no link");
    if (claim.kind == LinkKind::c2c || claim.target_class.rfind("0x068001", 0) == 0)
      return claim.cpu;
    const auto bus_id = bus_id_of(claim.target);
    if (!bus_id) return dropped(claim, "the target is no bus id");
    const int machine = topology_.site(claim.gpu).machine;
    const auto device = devices_.find({machine, *bus_id});
    if (device != devices_.end() && topology_.site(device->second).kind == SiteKind::gpu) {
      if (device->second == claim.gpu) return dropped(claim, "the target is the GPU itself");
      return device->second;
    }
    const bool to_gpu = claim.target_class.rfind("0x03", 0) == 0 ||
                        claim.target_class.rfind("0x12", 0) == 0 || claim.kind == LinkKind::xgmi;
    if (to_gpu && *bus_id != invisible) return dropped(claim, "the target is no GPU of this text");
    return fabric(machine, *bus_id);
  }

  std::nullopt_t dropped(const LinkClaim& claim, std::string_view why) {
    findings_.warn(
        claim.where, topology_.site(claim.gpu).name,
        fmt::format("{} link to \"{}\" left out: {}", name(claim.kind), shown(claim.target), why));
    return std::nullopt;
  }

  /// A switch that cannot be seen is one for all machines: what it joins has to be found out from
  /// elsewhere.
  int fabric(int machine, const std::string& bus_id) {
    const bool everywhere = bus_id == invisible;
    const auto [found, is_new] = fabrics_.try_emplace({everywhere ? -1 : machine, bus_id}, 0);
    if (is_new)
      found->second =
          topology_.add({SiteKind::fabric,
                         names_.make(SiteKind::fabric, everywhere ? 0 : machine, bus_id),
                         machine,
                         {{"busid", bus_id}}});
    Site& site = topology_.sites[static_cast<std::size_t>(found->second)];
    site.machine = std::min(site.machine, machine);
    return found->second;
  }

  void join(const LinkClaim& claim, const Pair& pair) {
    const auto [kind, gpu, other] = pair;
    Link link;
    link.kind = kind;
    link.count = counts_.at(pair);
    if (topology_.site(other).kind == SiteKind::gpu) {
      const auto back = counts_.find({kind, other, gpu});
      if (back == counts_.end()) {
        dropped(claim, fmt::format("{} does not say that it has it", topology_.site(other).name));
        return;
      }
      if (joined_.count({kind, other, gpu}) != 0) return;
      if (back->second != link.count) note_unequal(claim, link.count, back->second, other);
      link.count = std::min(link.count, back->second);
    }
    joined_.insert(pair);
    topology_.connect(gpu, other, link);
  }

  void note_unequal(const LinkClaim& claim, int forth, int back, int other) {
    findings_.warn(claim.where, topology_.site(claim.gpu).name,
                   fmt::format("{} links to {}, which has {} back: {} are used", forth,
                               topology_.site(other).name, back, std::min(forth, back)));
  }

  const Devices& devices_;
  SiteNames& names_;
  Topology& topology_;
  Findings& findings_;
  std::map<std::pair<int, std::string>, int> fabrics_;
  std::map<Pair, int> counts_;
  std::set<Pair> joined_;
  std::vector<std::pair<const LinkClaim*, Pair>> first_;  // in the order of the text
};

}  // namespace

void connect(const std::vector<LinkClaim>& claims, const Devices& devices, SiteNames& names,
             Topology& topology, Findings& findings) {
  Connector(devices, names, topology, findings).run(claims);
}

}  // namespace khoro::nccl
