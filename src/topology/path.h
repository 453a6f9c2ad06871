// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace khoro {

/// How two sites reach each other, best first, in the words of NCCL and nvidia-smi.
enum class PathKind : std::uint8_t {
  self,     // X
  direct,   // NV, or XG: NVLink or xGMI, through switches of its own alone
  relayed,  // NVB: direct links through one other GPU
  c2c,      // C2C: a GPU and the CPU it is coupled to
  one_hop,  // PIX: at most one PCIe bridge
  bridges,  // PXB: several bridges, no CPU
  c2c_pci,  // P2C: C2C to a CPU, then PCIe
  cpu,      // PHB: through the CPU of one NUMA node
  sockets,  // SYS: between CPUs
  network,  // NET
  none      // DIS
};

/// "PIX", "NVL": the words above.
std::string_view name(PathKind kind) noexcept;

struct Path {
  PathKind kind = PathKind::none;
  /// Indices of links, in order.
  std::vector<int> links;
  /// Of the slowest link.
  double bytes_per_second = 0;
  double latency_seconds = 0;
};

/// The path of the best kind between two sites; of those the fastest, then the shortest.
/// What hangs off PCIe is reached through bridges and CPUs, never through another device.
Path best_path(const Topology& topology, int from, int to);

/// The best path, and those over networks that are as fast and as short but leave by other ports
/// and enter by others. Empty if there is none.
std::vector<Path> equal_paths(const Topology& topology, int from, int to);

/// The best path that uses links to and from CPUs and bridges only; of kind `none` if there is
/// none.
Path host_path(const Topology& topology, int from, int to);

}  // namespace khoro
