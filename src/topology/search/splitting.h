// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "topology/graph.h"

namespace khoro {

/// A path through a graph, its edges in order, and how many units of data fit through it.
struct Strand {
  std::int64_t units = 0;
  std::vector<int> path;
};

/// Units of data between the GPUs of a graph alone: relays are taken away by joining units that
/// enter them with units that leave them, while each GPU can still receive from all others what it
/// must (edge splitting, as ForestColl does it; Bang-Jensen, Frank and Jackson 1995).
class SplitGraph {
 public:
  /// Whole units by edge. At each GPU as many as `trees` says begin, and must reach all others.
  /// What leaves a vertex must be as much as what enters it.
  SplitGraph(const Graph& graph, const std::vector<std::int64_t>& units,
             std::vector<std::int64_t> trees);

  void remove_relays();
  /// What is left from a GPU to another.
  const std::vector<Strand>& strands(int from, int to) const;
  /// Whether each GPU can still receive all.
  bool suffices();

 private:
  /// Units on each pair of vertices by which a GPU receives all that it must; empty: not known.
  using Flow = std::vector<std::int64_t>;
  /// Units that enter a relay from a vertex and leave it to another.
  struct Join {
    int from = 0;
    int relay = 0;
    int to = 0;
    std::int64_t amount = 0;
  };

  std::size_t pair(int from, int to) const noexcept {
    return static_cast<std::size_t>(from * graph_.vertices() + to);
  }
  std::int64_t units(int from, int to) const noexcept { return units_[pair(from, to)]; }
  std::int64_t leaving(int vertex) const noexcept;
  void remove(int relay);
  bool may_pass(int from, int relay, int to) const noexcept;
  void join_most(int from, int relay, int to);
  std::int64_t sure(const Join& join) const noexcept;
  void shrink_to_feasible(Join& join);
  std::int64_t missing(int gpu);
  bool is_tight(const Join& join) const;
  std::int64_t reroute(Flow& flow, const Join& join) const;
  void undo(const Join& join, const std::vector<std::int64_t>& rerouted);
  void apply(const Join& join);
  void join_strands(Join join);

  const Graph& graph_;
  std::vector<std::int64_t> trees_;  // by GPU
  std::vector<std::int64_t> units_;
  std::vector<std::vector<Strand>> strands_;
  std::vector<Flow> flows_;  // by GPU
  /// Sets of vertices out of which no fewer units may lead.
  std::vector<std::vector<bool>> tight_;
};

}  // namespace khoro
