// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/graph.h"

namespace khoro {

/// Where a network joins a part: an edge each way.
struct Door {
  int network = 0;  // a vertex of the whole graph
  int vertex = 0;   // of the part
  int in = 0;       // edges of the whole graph
  int out = 0;
};

/// What of a graph only networks join to the rest: a machine, or several with an NVLink fabric in
/// common.
struct GraphPart {
  /// Its vertices and edges, numbered anew: a site is the number of a vertex, and a link that of an
  /// edge.
  Graph graph;
  std::vector<int> vertices;  // of the whole graph
  std::vector<int> edges;
  std::vector<Door> doors;
  /// The same for parts that are built alike and that the same networks join.
  int kind = 0;
};

/// By number. Empty where one part has a door that leads one way only.
std::vector<GraphPart> parts_of(const Graph& graph);

}  // namespace khoro
