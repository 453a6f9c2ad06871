// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "topology/topology.h"

namespace khoro::tool {

/// Of a drawing, in its units.
inline constexpr double column = 104, row = 84, box_width = 88, box_height = 40, margin = 40;
inline constexpr double port_height = 20;
/// The highest arch between CPUs that are not beside each other.
inline constexpr double highest_arch = 56;

struct Place {
  double x = 0, y = 0;  // of the middle
  double width = box_width;
};

/// Where everything stands: CPUs above, what hangs off them in columns below, NICs with their ports
/// in one row, GPUs in one below that, so that nothing stands in the way of the arcs between them.
class Layout {
 public:
  explicit Layout(const Topology& topology);

  const Place& of(int site) const { return places_[static_cast<std::size_t>(site)]; }
  double width() const noexcept { return next_column_ * column + 2 * margin; }
  double height() const noexcept { return height_; }
  /// Where the arc to another GPU begins below a GPU: each has a place of its own.
  double arc_end(int gpu, int other) const;
  /// How deep the arc between two GPUs hangs.
  double depth(int one, int other) const;

 private:
  /// Rows from a site down to the row of NICs.
  int deepest(int site) const;
  double y_of(int site, int level) const;
  void put_column(int site, double y);
  void put(int site, int level);
  void put_ports(int nic);
  void put_unattached();
  void put_arcs();
  void put_fabrics();

  const Topology& topology_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
  std::vector<Place> places_;
  std::map<std::pair<int, int>, double> arc_ends_;
  int depth_ = 0;
  double cpu_y_ = margin, nic_y_ = 0, gpu_y_ = 0;
  double next_column_ = 0;
  double height_ = 0;
};

}  // namespace khoro::tool
