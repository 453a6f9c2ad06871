// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "topology/topology.h"

namespace khoro {

/// A topology under repair, and what was said of it. The passes of normalise(), in their order;
/// each leaves a topology that the next can take.
struct Repairs {
  Topology topology;
  std::vector<Diagnostic> diagnostics;
  /// Whether sites have to be told with their machine.
  bool several_machines = false;

  explicit Repairs(Topology broken);
  void tell(Severity severity, int site, std::string message);
  std::string words_for(int site) const;
  Site& site(int index) { return topology.sites[static_cast<std::size_t>(index)]; }
  /// Removes the sites and links that are marked; either may be empty.
  void remove(const std::vector<bool>& sites, const std::vector<bool>& links);
};

/// Whether sites are of more than one machine.
bool has_several_machines(const Topology& topology);
/// "gpu 3 at 0000:0a:00.0", "bridge 0000:03:00.0", "port eth0", with its machine where there are
/// several: what its owner calls it.
std::string words_for(const Site& site, bool several_machines);

/// Drops links of a site to itself, of count 0, and to what cannot have such a link; makes counts
/// of both ways equal; joins links of one kind between the same sites.
void repair_direct_links(Repairs& repairs);
/// All fabrics that one GPU reaches are one; those that join nothing are none.
void join_fabrics(Repairs& repairs);
/// Speeds and widths of PCIe links; sets their rates.
void repair_pci(Repairs& repairs);
/// A switch that shows itself as several, one behind the other.
void flatten_switches(Repairs& repairs);
/// One port that is listed several times; speeds; ports of one NIC; numbers.
void repair_ports(Repairs& repairs);
/// Links between the CPUs of a machine.
void join_cpus(Repairs& repairs);
/// Rates and latencies that are not known yet.
void fill_rates(Repairs& repairs);
/// Names GPUs whose links are far below those of their peers.
void name_weak_gpus(Repairs& repairs);

}  // namespace khoro
