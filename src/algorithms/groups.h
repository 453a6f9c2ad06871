// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "topology/topology.h"

namespace khoro {

/// The ranks by the machine that they are on. Groups come in the order of their first ranks, the
/// members of a group in rank order.
class Groups {
 public:
  explicit Groups(const Topology& topology) {
    std::unordered_map<int, int> groups;  // by machine
    for (int rank = 0; rank < topology.ranks(); ++rank) {
      const auto [place, is_new] = groups.try_emplace(topology.machine_of(rank), count());
      if (is_new) members_.emplace_back();
      Members& members = members_[static_cast<std::size_t>(place->second)];
      seats_.push_back({place->second, static_cast<int>(members.size())});
      members.push_back(rank);
    }
  }

  struct Seat {
    int group = 0;
    int member = 0;  // number in the group
  };
  Seat seat(int rank) const { return seats_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& members(int group) const {
    return members_[static_cast<std::size_t>(group)];
  }

  int rank_at(Seat seat) const {
    return members(seat.group)[static_cast<std::size_t>(seat.member)];
  }
  /// One rank of each group, those of the same number in it.
  std::vector<int> all_at(int member) const {
    std::vector<int> ranks;
    for (int group = 0; group < count(); ++group) ranks.push_back(rank_at({group, member}));
    return ranks;
  }

  int ranks() const { return static_cast<int>(seats_.size()); }
  int count() const { return static_cast<int>(members_.size()); }
  int size(int group) const { return static_cast<int>(members(group).size()); }
  int least() const { return static_cast<int>(std::min_element(begin(), end(), less)->size()); }
  int most() const { return static_cast<int>(std::max_element(begin(), end(), less)->size()); }

 private:
  using Members = std::vector<int>;
  std::vector<Members>::const_iterator begin() const { return members_.begin(); }
  std::vector<Members>::const_iterator end() const { return members_.end(); }
  static bool less(const Members& a, const Members& b) { return a.size() < b.size(); }

  std::vector<Seat> seats_;       // by rank
  std::vector<Members> members_;  // by group
};

/// Of each group the rank that stands for it: the root for its own, else the first.
struct Leaders {
  const Groups& groups;
  Groups::Seat root;

  int member_of(int group) const { return group == root.group ? root.member : 0; }
  bool include(Groups::Seat seat) const { return seat.member == member_of(seat.group); }
  std::vector<int> ranks() const {
    std::vector<int> ranks = groups.all_at(0);
    ranks[static_cast<std::size_t>(root.group)] = groups.rank_at(root);
    return ranks;
  }
};

}  // namespace khoro
