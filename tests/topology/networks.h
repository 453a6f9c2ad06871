// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "topology/machines.h"

namespace khoro::test {

/// Machines of several kinds, joined by their ports to a network that is no limit itself.
class Cluster {
 public:
  Machine all;

  /// Eight GPUs on a fabric; a PCIe switch for each, with a NIC but for those of `missing`.
  void add_hgx(const std::vector<int>& missing = {}, int gpus = 8, double port = 50) {
    const int fabric = all.add(SiteKind::fabric, machines_);
    const int cpus[] = {all.add(SiteKind::cpu, machines_), all.add(SiteKind::cpu, machines_)};
    all.join(cpus[0], cpus[1], LinkKind::socket, 40);
    int number = 0;
    for (int gpu : all.add_gpus(gpus, machines_)) {
      all.join(gpu, fabric, LinkKind::nvlink, 370.8, 18);
      const int bridge = all.add(SiteKind::bridge, machines_);
      all.join(bridge, cpus[2 * number / gpus], LinkKind::pci, 48);
      all.join(gpu, bridge, LinkKind::pci, 48);
      if (std::find(missing.begin(), missing.end(), number) == missing.end())
        add_nic(bridge, number, port);
      ++number;
    }
    ++machines_;
  }

  /// A machine made elsewhere, with a NIC at each of some sites of it.
  void add_copy(const Machine& one, const std::vector<int>& at, double port) {
    const auto first = static_cast<int>(all.topology.sites.size());
    std::vector<int> sites;
    for (const Site& site : one.topology.sites) {
      sites.push_back(all.add(site.kind, machines_));
      if (site.kind == SiteKind::gpu) all.topology.place.push_back(sites.back());
    }
    for (Link link : one.topology.links) {
      link.from += first;
      link.to += first;
      all.topology.links.push_back(link);
    }
    int rail = 0;
    for (int site : at) add_nic(first + site, rail++, port);
    ++machines_;
  }

  /// Call it once, after all machines.
  const Machine& joined() {
    const int network = all.add(SiteKind::network);
    for (std::size_t i = 0; i < ports_.size(); ++i)
      all.join(ports_[i], network, LinkKind::network, rates_[i]);
    return all;
  }

 private:
  void add_nic(int below, int rail, double port) {
    const int nic = all.add(SiteKind::nic, machines_);
    all.join(nic, below, LinkKind::pci, 48);
    ports_.push_back(all.add(SiteKind::port, machines_));
    all.topology.sites.back().facts["rail"] = std::to_string(rail);
    rates_.push_back(port);
    all.join(nic, ports_.back(), LinkKind::port, port);
  }

  std::vector<int> ports_;
  std::vector<double> rates_;
  int machines_ = 0;
};

/// As many copies of a machine.
inline Machine copies(int count, const Machine& one, const std::vector<int>& nics_at, double port) {
  Cluster cluster;
  for (int i = 0; i < count; ++i) cluster.add_copy(one, nics_at, port);
  return cluster.joined();
}

inline Machine hgx_machines(int count) {
  Cluster cluster;
  for (int i = 0; i < count; ++i) cluster.add_hgx();
  return cluster.joined();
}

}  // namespace khoro::test
