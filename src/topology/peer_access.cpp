// SPDX-License-Identifier: Apache-2.0
#include "topology/peer_access.h"

#include <algorithm>

#include "topology/path.h"

namespace khoro {

const char* far_peer_access(const Topology& topology, int gpu) {
  if (!topology.site(gpu).fact("gcn").empty()) return "RCCL goes up to SYS";
  const int machine = topology.site(gpu).machine, cpu = topology.cpu_of(gpu);
  const auto gpus = topology.sites_of(SiteKind::gpu);
  const auto beside = std::count_if(
      gpus.begin(), gpus.end(), [&](int other) { return topology.site(other).machine == machine; });
  if (beside <= 2 && cpu >= 0 && topology.site(cpu).fact("vendor") == "AuthenticAMD")
    return "NCCL goes up to SYS between two GPUs and CPUs of AMD";
  return "";
}

bool have_peer_access(const Topology& topology, int one, int other) {
  PathKind kind = best_path(topology, one, other).kind;
  if (kind == PathKind::relayed) kind = host_path(topology, one, other).kind;
  if (kind <= PathKind::bridges) return true;
  const bool through_cpus = kind == PathKind::cpu || kind == PathKind::sockets;
  return through_cpus && *far_peer_access(topology, one) != '\0';
}

}  // namespace khoro
