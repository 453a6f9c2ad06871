// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace khoro {

/// `cpu`: the cores and memory of one NUMA node, or of a package where no more is known. `bridge`:
/// a PCIe bridge or switch, or a PCI function that carries several GPUs. `nic`: a network adapter;
/// `port`: one of its ports, as an operating system names it. `fabric`: the NVLink switches that
/// join GPUs, of one machine or of several. `network`: what joins the ports of several machines.
enum class SiteKind : std::uint8_t { cpu, bridge, gpu, nic, port, fabric, network };

/// `pci`: from a device to what it hangs off. `socket`: between the CPUs of a machine. `inside`:
/// between parts of one device, or to a device that hangs off no bus. `port`: a NIC to its port;
/// `network`: a port to the network.
enum class LinkKind : std::uint8_t { pci, nvlink, xgmi, c2c, socket, inside, port, network };

/// "cpu", "nvlink": what texts call them.
std::string_view name(SiteKind kind) noexcept;
std::string_view name(LinkKind kind) noexcept;

/// NVLink and xGMI: what GPUs reach each other by without PCIe and CPUs.
constexpr bool is_direct(LinkKind kind) noexcept {
  return kind == LinkKind::nvlink || kind == LinkKind::xgmi;
}

/// What is known of a site beside its links, as texts spell it: "busid" is "0000:06:00.0",
/// "link_speed" is "16.0 GT/s PCIe". Names are those of the attributes of NCCL's topology XML.
using Facts = std::map<std::string, std::string, std::less<>>;

/// A GPU, NIC, CPU package, NUMA node or switch.
struct Site {
  SiteKind kind = SiteKind::cpu;
  /// Unique in a topology.
  std::string name;
  /// Number of the machine that it is part of. Machines are numbered in any way. A site that is
  /// part of several says the least.
  int machine = 0;
  Facts facts;

  /// Empty if it is not known.
  std::string_view fact(std::string_view key) const;
  bool operator==(const Site&) const = default;
};

/// A connection between two sites, one way.
struct Link {
  int from = 0;
  int to = 0;
  LinkKind kind = LinkKind::pci;
  /// Of how many equal links it is made.
  int count = 1;
  /// Of all of them together, payload in this direction while the other is busy too; 0 when not
  /// known.
  double bytes_per_second = 0;
  double latency_seconds = 0;
  bool operator==(const Link&) const = default;
};

/// The machines of a job as a graph, and where each rank sits. A value: pure, comparable.
struct Topology {
  std::vector<Site> sites;
  std::vector<Link> links;
  /// Index of the site of each rank.
  std::vector<int> place;

  int ranks() const noexcept { return static_cast<int>(place.size()); }
  const Site& site(int index) const { return sites[static_cast<std::size_t>(index)]; }
  int machine_of(int rank) const { return site(place[static_cast<std::size_t>(rank)]).machine; }
  /// Indices, in order.
  std::vector<int> sites_of(SiteKind kind) const;
  /// What each site hangs off: the site before it on the shortest way from a CPU over `pci`,
  /// `inside` and `port` links. -1 for CPUs and for what hangs off none.
  std::vector<int> parents() const;
  /// The CPU that a site hangs off, itself if it is one; -1 if it hangs off none.
  int cpu_of(int site) const;
  /// -1 if there is none of that name.
  int find(std::string_view site_name) const noexcept;
  /// Index of the new site.
  int add(Site site);
  /// One link each way.
  void connect(int one, int other, Link both);
  /// The sites that `order` names, in its order, and what of links and places is among them.
  Topology arranged(const std::vector<int>& order) const;
  std::uint64_t hash() const noexcept;
  bool operator==(const Topology&) const = default;

  /// `ranks` ranks that share one CPU package and its memory.
  static Topology one_machine(int ranks);
  /// Machines of one CPU package each; `machine_of_rank` says where each rank is.
  static Topology machines(const std::vector<int>& machine_of_rank);
};

}  // namespace khoro
