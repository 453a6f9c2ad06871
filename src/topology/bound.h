// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "topology/graph.h"

namespace khoro {

/// A set of sites and the links that leave it: what limits a rate.
struct Cut {
  std::vector<int> sites;
  /// Of each way out the slowest link.
  std::vector<int> links;
};

/// What no algorithm can exceed between GPUs of a set, whatever rings or trees it uses. Data of a
/// set S of sites leaves it by the links out of it; from the worst S follow
///
/// * share x = min cap(out of S) / GPUs in S, over all S that miss a GPU: how fast the data of each
///   GPU can reach all others if all send at once. Trees can reach it;
/// * bus = (N - 1) x: bus bandwidth of allgather and reducescatter, and of an allreduce that is one
///   after the other. An allreduce that overlaps the two can have more where links are unequal:
///   what leaves a small set is little in one of them while it is much in the other;
/// * ring = min cap(out of S), over all S that have a GPU and miss one: the sum of the rates of
///   rings, since each ring leaves each S at least once. It is also the rate of the best broadcast
///   from the worst root.
///
/// In bytes per second; exact, since capacities are whole numbers. All 0 where links do not join
/// the GPUs, or there are fewer than two.
struct Bound {
  double share = 0;
  double bus = 0;
  double ring = 0;
  Cut bus_cut;
  Cut ring_cut;
};

Bound bound_of(const Graph& graph);

/// The best broadcast from each GPU, by vertex of the graph.
std::vector<double> broadcast_bounds(const Graph& graph);

}  // namespace khoro
