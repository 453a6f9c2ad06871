// SPDX-License-Identifier: Apache-2.0
#include "access.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "topo.h"
#include "topology/index.h"
#include "topology/path.h"
#include "topology/peer_access.h"

namespace khoro::tool {
namespace {

bool is_gpu(const Topology& topology, int site) {
  return topology.site(site).kind == SiteKind::gpu;
}

/// The NIC that a site is, or is a port of; -1 if it is neither.
int nic_of(const Topology& topology, int site) {
  if (topology.site(site).kind == SiteKind::nic) return site;
  if (topology.site(site).kind != SiteKind::port) return -1;
  const auto up = std::find_if(topology.links.begin(), topology.links.end(), [&](const Link& link) {
    return link.from == site && link.kind == LinkKind::port;
  });
  return up == topology.links.end() ? -1 : up->to;
}

/// The sites of a kind that a path passes between its ends, in order.
std::vector<std::string> passed(const Topology& topology, const Path& path, SiteKind kind) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < path.links.size(); ++i) {
    const Site& site = topology.site(topology.links[at(path.links[i])].from);
    if (site.kind == kind) names.push_back(site.name);
  }
  return names;
}

/// "the path crosses the root complex of cpu0 (PHB)", "the path leads from cpu0 to cpu1 (SYS)".
std::string crossing(const Topology& topology, const Path& path) {
  const auto cpus = passed(topology, path, SiteKind::cpu);
  if (cpus.size() > 1)
    return fmt::format("the path leads from {} to {} ({})", cpus.front(), cpus.back(),
                       name(path.kind));
  return fmt::format("the path crosses the root complex of {} ({})", fmt::join(cpus, ", "),
                     name(path.kind));
}

std::string between_gpus(const Topology& topology, int one, int other) {
  const Path path = best_path(topology, one, other);
  switch (path.kind) {
    case PathKind::direct:
    case PathKind::relayed: {
      const bool xgmi = topology.links[at(path.links.front())].kind == LinkKind::xgmi;
      auto by = passed(topology, path, SiteKind::fabric);
      for (std::string& gpu : passed(topology, path, SiteKind::gpu)) by.push_back(std::move(gpu));
      return fmt::format("peer access: yes, over {}{}{}", xgmi ? "xGMI" : "NVLink",
                         by.empty() ? "" : " through ", fmt::join(by, ", "));
    }
    case PathKind::c2c:
      return fmt::format("peer access: yes, over C2C through {}",
                         fmt::join(passed(topology, path, SiteKind::cpu), ", "));
    case PathKind::one_hop:
    case PathKind::bridges:
      return fmt::format("peer access: yes, over PCIe below one CPU ({})", name(path.kind));
    case PathKind::network:
      return "peer access: no, they are in different machines: data goes through NICs";
    default:
      break;
  }
  const std::string why = far_peer_access(topology, one), how = crossing(topology, path);
  if (!why.empty()) return fmt::format("peer access: yes: {}, and {}", how, why);
  return fmt::format(
      "peer access: not used: {}, and NCCL goes up to PXB; data goes through memory "
      "of the host",
      how);
}

/// Whether a NIC may reach memory of a GPU on a path of that kind.
bool is_near(PathKind kind) { return kind <= PathKind::bridges || kind == PathKind::c2c_pci; }

/// A GPU that another reaches over NVLink and that is near to a NIC, as its name; empty if there is
/// none.
std::string gpu_near(const Topology& topology, int gpu, int nic) {
  for (const int other : topology.sites_of(SiteKind::gpu))
    if (other != gpu && is_near(best_path(topology, other, nic).kind) &&
        best_path(topology, gpu, other).kind == PathKind::direct)
      return topology.site(other).name;
  return {};
}

/// The facts `gdr` of a GPU and of the ports of a NIC: with what is said of those that cannot, and
/// the names of those of which it is not said.
struct Ability {
  std::string cannot;
  std::vector<std::string> unknown;

  void add(const Site& site, std::string_view what) {
    const std::string_view gdr = site.fact("gdr");
    if (gdr.empty()) unknown.push_back(site.name);
    if (gdr == "0" && cannot.empty()) cannot = fmt::format("{} says gdr=0: {}", site.name, what);
  }
};

Ability ability_of(const Topology& topology, int gpu, int nic) {
  Ability ability;
  ability.add(topology.site(gpu), "its driver lets no NIC reach its memory");
  for (const Link& link : topology.links)
    if (link.from == nic && link.kind == LinkKind::port)
      ability.add(topology.site(link.to), "its driver reaches no memory of GPUs");
  return ability;
}

std::string between_gpu_and_nic(const Topology& topology, int gpu, int nic) {
  const std::string no = "GPUDirect RDMA: not used: ",
                    host = "; data goes through memory of the host";
  const Path path = best_path(topology, gpu, nic);
  if (path.kind == PathKind::network) return no + "they are in different machines";
  if (topology.site(nic).fact("busid").empty())
    return no + topology.site(nic).name + " hangs off no PCIe bus" + host;
  const Ability ability = ability_of(topology, gpu, nic);
  if (!ability.cannot.empty()) return no + ability.cannot + host;
  const std::string unknown =
      ability.unknown.empty()
          ? ""
          : fmt::format("; that {} can is not said", fmt::join(ability.unknown, " and "));
  if (is_near(path.kind))
    return fmt::format("GPUDirect RDMA: yes, {} is near enough{}", name(path.kind), unknown);
  const std::string far =
      fmt::format("{}{}, and NCCL goes up to PXB", no, crossing(topology, path));
  const std::string other = gpu_near(topology, gpu, nic);
  if (other.empty()) return far + host;
  return fmt::format("{}; data goes over NVLink to {}, which is near enough (PXN){}", far, other,
                     unknown);
}

}  // namespace

std::string access_between(const Topology& topology, int one, int other) {
  if (!is_gpu(topology, one)) std::swap(one, other);
  if (!is_gpu(topology, one)) return {};
  if (is_gpu(topology, other)) return between_gpus(topology, one, other);
  const int nic = nic_of(topology, other);
  return nic < 0 ? std::string() : between_gpu_and_nic(topology, one, nic);
}

}  // namespace khoro::tool
