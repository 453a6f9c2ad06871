// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "topology/topology.h"

namespace khoro::test {

/// Machines for tests, as a reader would leave them: no rates, provisional names.

inline Site gpu_site(int dev, std::string bus_id, std::string sm = "80") {
  return {SiteKind::gpu,
          "gpu " + bus_id,
          0,
          {{"dev", std::to_string(dev)},
           {"busid", bus_id},
           {"sm", std::move(sm)},
           {"link_speed", "16.0 GT/s PCIe"},
           {"link_width", "16"}}};
}

inline Site bridge_site(std::string bus_id, std::string link_speed = "16.0 GT/s PCIe",
                        std::string link_width = "16") {
  return {SiteKind::bridge,
          "bridge " + bus_id,
          0,
          {{"busid", bus_id},
           {"link_speed", std::move(link_speed)},
           {"link_width", std::move(link_width)}}};
}

inline Site cpu_site(int numa) {
  return {SiteKind::cpu,
          fmt::format("cpu {}", numa),
          0,
          {{"numaid", std::to_string(numa)},
           {"arch", "x86_64"},
           {"vendor", "GenuineIntel"},
           {"familyid", "6"},
           {"modelid", "106"}}};
}

/// Two CPUs, two GPUs behind a switch on each; no direct links.
inline Topology two_sockets() {
  Topology machine;
  for (int numa = 0; numa < 2; ++numa) {
    const int cpu = machine.add(cpu_site(numa));
    const int bridge = machine.add(bridge_site(fmt::format("0000:{}0:00.0", numa + 1)));
    machine.connect(bridge, cpu, {.kind = LinkKind::pci});
    for (int i = 0; i < 2; ++i) {
      const int gpu =
          machine.add(gpu_site(2 * numa + i, fmt::format("0000:{}{}:00.0", numa + 1, i + 1)));
      machine.connect(gpu, bridge, {.kind = LinkKind::pci});
    }
  }
  return machine;
}

/// The link between two sites of a kind; null if there is none.
inline const Link* link_between(const Topology& topology, std::string_view from,
                                std::string_view to, LinkKind kind) {
  for (const Link& link : topology.links)
    if (link.kind == kind && topology.site(link.from).name == from &&
        topology.site(link.to).name == to)
      return &link;
  return nullptr;
}

/// "nvlink x2" for the link from one site to another; "" if there is none.
inline std::string link(const Topology& topology, const std::string& from, const std::string& to) {
  std::string found;
  for (const Link& each : topology.links)
    if (topology.site(each.from).name == from && topology.site(each.to).name == to)
      found += fmt::format("{}{} x{}", found.empty() ? "" : ", ", name(each.kind), each.count);
  return found;
}

}  // namespace khoro::test
