// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace khoro {

/// The file in which NCCL keeps what its search found, and from which it can be told what to use.

/// One ring, one chain of a tree, or the head GPU of an NVLS tree.
struct NcclChannel {
  /// `dev` is the GPU's NVML index, with the number of the host in the top byte.
  struct Gpu {
    std::uint64_t dev = 0;
    int rank = -1;  // -1: not said
    bool operator==(const Gpu&) const = default;
  };

  std::vector<Gpu> gpus;
  /// By which NICs a machine is entered and left.
  std::optional<std::uint64_t> net_in;
  std::optional<std::uint64_t> net_out;
  bool operator==(const NcclChannel&) const = default;
};

/// What was found for one kind of algorithm. Speeds are in GB/s per channel, inside a machine and
/// between machines; types are the worst kinds of path used: LOC, NVL, NVB, C2C, PIX, PXB, P2C,
/// PXN, PHB, SYS, NET or DIS.
struct NcclGraph {
  int id = 0;       // 0 rings, 1 trees, 2 collnet chains, 3 NVLS, 4 collnet direct
  int pattern = 0;  // 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 collnet direct
  int cross_nic = 0;
  double speed_intra = 0;
  double speed_inter = 0;
  double latency_inter = 0;
  std::string type_intra = "LOC";
  std::string type_inter = "LOC";
  bool same_channels = false;
  std::vector<NcclChannel> channels;
  bool operator==(const NcclGraph&) const = default;
};

struct GraphReading {
  /// Present unless a diagnostic is an error.
  std::optional<std::vector<NcclGraph>> graphs;
  std::vector<Diagnostic> diagnostics;
};

/// Reads graph XML, version 1. As NCCL does, it takes `dev` for hexadecimal with and without 0x.
GraphReading read_nccl_graphs(std::string_view text);

std::string write_nccl_graphs(const std::vector<NcclGraph>& graphs);

}  // namespace khoro
