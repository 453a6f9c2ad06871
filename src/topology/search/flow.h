// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace khoro {

/// A directed graph with whole capacities, and the largest flow between two of its vertices
/// (Dinic). What it finds depends on the order in which arcs were added, and on nothing else.
class FlowNetwork {
 public:
  explicit FlowNetwork(int vertices);

  /// Number of the new arc.
  int add(int from, int to, std::int64_t capacity);
  /// For the flows to come.
  void set_capacity(int arc, std::int64_t capacity) noexcept;
  /// Value of the largest flow from source to sink, or `most` if it is larger than that. A flow
  /// found before is forgotten.
  std::int64_t flow(int source, int sink, std::int64_t most);
  /// How much of the last flow() goes over an arc.
  std::int64_t flow_over(int arc) const noexcept;
  /// Whether a vertex is on the source's side of the smallest cut, after a flow() that `most` did
  /// not end.
  bool on_source_side(int vertex) const noexcept;

 private:
  struct Arc {
    int to = 0;
    std::int64_t rest = 0;
    std::int64_t capacity = 0;
  };

  bool find_levels(int source, int sink);
  std::int64_t push(int vertex, int sink, std::int64_t most);

  std::vector<Arc> arcs_;               // each followed by its reverse
  std::vector<std::vector<int>> from_;  // arcs by vertex
  std::vector<int> level_;
  std::vector<std::size_t> next_;  // which arc of a vertex to try
  std::vector<int> queue_;
};

}  // namespace khoro
