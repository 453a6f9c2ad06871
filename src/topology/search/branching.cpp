// SPDX-License-Identifier: Apache-2.0
#include "topology/search/branching.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topology/index.h"
#include "topology/search/flow.h"

namespace khoro {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int32_t>::max();

class BranchingSearch {
 public:
  BranchingSearch(const std::vector<std::int64_t>& trees, std::vector<std::int64_t> units)
      : points_(static_cast<int>(trees.size())),
        units_(std::move(units)),
        arcs_(units_.size(), -1),
        network_(0) {
    for (int root = points_; root-- > 0;)
      if (trees[at(root)] > 0) open_.push_back({root, trees[at(root)], {root}, {}});
    lay_out();
  }

  std::vector<Branching> pack() {
    std::vector<Branching> done;
    while (!open_.empty()) {
      Branching branching = std::move(open_.back());
      open_.pop_back();
      close(branching);
      if (!grow(branching)) return {};
      done.push_back(std::move(branching));
    }
    return done;
  }

 private:
  std::size_t pair(int from, int to) const noexcept { return at(from * points_ + to); }

  /// The network that room() asks: what is left between points, and a source for open trees that
  /// leads to all points that they have.
  void lay_out() {
    const int source = points_;
    network_ = FlowNetwork(points_ + 1 + static_cast<int>(open_.size()));
    for (int i = 0; i < points_; ++i)
      for (int j = 0; j < points_; ++j)
        if (units_[pair(i, j)] > 0) arcs_[pair(i, j)] = network_.add(i, j, units_[pair(i, j)]);
    begin_.assign(at(points_), 0);
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i].reached.size() == 1) {
        begin_[at(open_[i].root)] += open_[i].trees;
        continue;
      }
      const int trees = source + 1 + static_cast<int>(i);
      network_.add(source, trees, open_[i].trees);
      for (int point : open_[i].reached) network_.add(trees, point, unlimited);
    }
    begin_arcs_.clear();
    for (int i = 0; i < points_; ++i) begin_arcs_.push_back(network_.add(source, i, begin_[at(i)]));
  }

  /// Trees that were open are being grown.
  void close(const Branching& branching) {
    if (branching.reached.size() > 1) return lay_out();
    begin_[at(branching.root)] -= branching.trees;
    network_.set_capacity(begin_arcs_[at(branching.root)], begin_[at(branching.root)]);
  }

  /// Reaches all points. Trees that an edge has no room for part, and are grown later.
  bool grow(Branching& branching) {
    while (branching.reached.size() < at(points_))
      if (!add_edge(branching)) return false;
    return true;
  }

  /// Edges from points that were reached early come first: trees stay flat.
  bool add_edge(Branching& branching) {
    std::vector<bool> is_reached(at(points_));
    for (int point : branching.reached) is_reached[at(point)] = true;
    for (int from : branching.reached)
      for (int to = 0; to < points_; ++to) {
        if (units_[pair(from, to)] == 0 || is_reached[at(to)]) continue;
        const std::int64_t amount = room(branching, from, to);
        if (amount == 0) continue;
        if (amount < branching.trees) {
          open_.push_back(branching);
          open_.back().trees -= amount;
          branching.trees = amount;
          lay_out();
        }
        units_[pair(from, to)] -= amount;
        network_.set_capacity(arcs_[pair(from, to)], units_[pair(from, to)]);
        branching.edges.emplace_back(from, to);
        branching.reached.push_back(to);
        return true;
      }
    return false;
  }

  /// How many of the trees may take an edge, so that all others can still be completed: each set of
  /// points must be entered by as many units as there are open trees that have none of its points.
  std::int64_t room(const Branching& branching, int from, int to) {
    const std::int64_t most = std::min(units_[pair(from, to)], branching.trees);
    const std::int64_t others =
        std::accumulate(open_.begin(), open_.end(), std::int64_t{0},
                        [](std::int64_t sum, const Branching& one) { return sum + one.trees; });
    network_.set_capacity(begin_arcs_[at(from)], unlimited);
    const std::int64_t found = network_.flow(points_, to, others + most) - others;
    network_.set_capacity(begin_arcs_[at(from)], begin_[at(from)]);
    return std::max<std::int64_t>(found, 0);
  }

  int points_;
  std::vector<std::int64_t> units_;
  std::vector<int> arcs_;
  std::vector<Branching> open_;
  FlowNetwork network_;
  std::vector<std::int64_t> begin_;  // open trees that have reached their root alone, by root
  std::vector<int> begin_arcs_;
};

}  // namespace

std::vector<Branching> pack_branchings(const std::vector<std::int64_t>& trees,
                                       std::vector<std::int64_t> units) {
  return BranchingSearch(trees, std::move(units)).pack();
}

}  // namespace khoro
