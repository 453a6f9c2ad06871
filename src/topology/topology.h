// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace khoro {

/// A GPU, NIC, CPU package, NUMA node or switch.
struct Site {
  std::string name;
  /// Number of the machine that it is part of. Machines are numbered in any way.
  int machine = 0;
  bool operator==(const Site&) const = default;
};

/// A connection between two sites, one way.
struct Link {
  int from = 0;
  int to = 0;
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
  int machine_of(int rank) const {
    return sites[static_cast<std::size_t>(place[static_cast<std::size_t>(rank)])].machine;
  }
  std::uint64_t hash() const noexcept;
  bool operator==(const Topology&) const = default;

  /// `ranks` ranks that share one CPU package and its memory.
  static Topology one_machine(int ranks);
  /// Machines of one CPU package each; `machine_of_rank` says where each rank is.
  static Topology machines(const std::vector<int>& machine_of_rank);
};

}  // namespace khoro
