// SPDX-License-Identifier: Apache-2.0
#include "topology/canonical.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "topology/index.h"
#include "topology/leaving.h"
#include "topology/rates.h"

namespace khoro {
namespace {

/// What sorts the sites of a kind within a machine. "dev" and "numaid" are numbers, and sort as
/// such.
using SiteKey = std::tuple<int, int, long, std::string, std::string, std::string, Facts>;

/// So many links are looked at to tell apart sites of which all is known alike. No machine needs a
/// part of it; a text that was made to takes no longer.
constexpr long most_looks = 2'000'000;

class Order {
 public:
  explicit Order(const Topology& topology)
      : topology_(topology),
        leaving_(links_leaving(topology)),
        touching_(topology.sites.size()),
        order_(topology.sites.size()),
        rank_(topology.sites.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    for (std::size_t i = 0; i < topology.links.size(); ++i)
      for (const int end : {topology.links[i].from, topology.links[i].to})
        touching_[at(end)].push_back(static_cast<int>(i));
  }

  std::vector<int> find() {
    std::vector<SiteKey> keys;
    for (std::size_t i = 0; i < order_.size(); ++i) keys.push_back(key_of(static_cast<int>(i)));
    sort_by(keys);
    refine();
    while (looks_ < most_looks && choose()) refine();
    return std::move(order_);
  }

 private:
  SiteKey key_of(int index) const;
  /// Sorts by `keys` and gives sites of equal keys one rank: the place of the first of them.
  template <class Keys>
  void sort_by(const Keys& keys);
  /// Tells sites of one rank apart by the ranks of what they are joined to, until nothing changes.
  void refine();
  /// Puts the first of several sites of one rank before the others; false where it makes no
  /// difference which of them that is.
  bool choose();
  using End = std::tuple<int, bool, LinkKind, int, double>;
  /// What a link of a site joins it to, and whether it leads there.
  End end_of(int number, int site) const {
    const Link& link = topology_.links[at(number)];
    const bool leaves = link.from == site;
    const int other = leaves ? link.to : link.from;
    return {rank_[at(other)], leaves, link.kind, link.count, link.bytes_per_second};
  }
  /// Whether both are joined to the very same sites.
  bool are_twins(int one, int other) const;

  const Topology& topology_;
  std::vector<std::vector<int>> leaving_;
  std::vector<std::vector<int>> touching_;  // links of a site, in both directions
  std::vector<int> order_;
  std::vector<int> rank_;  // by site
  int ranks_ = 0;          // how many different ones
  long looks_ = 0;
};

SiteKey Order::key_of(int index) const {
  const Site& site = topology_.site(index);
  std::string label(site.fact("name"));
  if (site.kind == SiteKind::nic)
    for (const int leaving : leaving_[at(index)]) {
      const Link& link = topology_.links[at(leaving)];
      if (link.kind != LinkKind::port) continue;
      const std::string port(topology_.site(link.to).fact("name"));
      if (label.empty() || port < label) label = port;
    }
  const std::string_view number = site.kind == SiteKind::cpu ? "numaid" : "dev";
  return {static_cast<int>(site.kind),
          site.machine,
          number_of(site, number).value_or(LONG_MAX),
          std::string(site.fact("busid")),
          std::move(label),
          std::string(site.fact("guid")),
          site.facts};
}

template <class Keys>
void Order::sort_by(const Keys& keys) {
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int one, int other) { return keys[at(one)] < keys[at(other)]; });
  ranks_ = 0;
  std::vector<int> rank(rank_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const bool same = i > 0 && keys[at(order_[i])] == keys[at(order_[i - 1])];
    rank[at(order_[i])] = same ? rank[at(order_[i - 1])] : static_cast<int>(i);
    ranks_ += !same;
  }
  rank_ = std::move(rank);
}

void Order::refine() {
  using Ends = std::vector<End>;
  while (looks_ < most_looks && ranks_ < static_cast<int>(order_.size())) {
    looks_ += static_cast<long>(order_.size() + topology_.links.size());
    const int before = ranks_;
    std::vector<std::pair<int, Ends>> keys;
    for (std::size_t site = 0; site < rank_.size(); ++site) {
      Ends ends;
      for (const int link : touching_[site]) ends.push_back(end_of(link, static_cast<int>(site)));
      std::sort(ends.begin(), ends.end());
      keys.emplace_back(rank_[site], std::move(ends));
    }
    sort_by(keys);
    if (ranks_ == before) return;
  }
}

bool Order::are_twins(int one, int other) const {
  const auto ends = [&](int site) {
    std::vector<std::pair<int, bool>> ends;
    for (const int number : touching_[at(site)]) {
      const Link& link = topology_.links[at(number)];
      const bool leaves = link.from == site;
      ends.emplace_back(leaves ? link.to : link.from, leaves);
    }
    std::sort(ends.begin(), ends.end());
    return ends;
  };
  return ends(one) == ends(other);
}

bool Order::choose() {
  for (std::size_t i = 0; i + 1 < order_.size(); ++i) {
    if (rank_[at(order_[i])] != rank_[at(order_[i + 1])] || are_twins(order_[i], order_[i + 1]))
      continue;
    const int rank = rank_[at(order_[i])];
    for (std::size_t j = i + 1; j < order_.size() && rank_[at(order_[j])] == rank; ++j)
      rank_[at(order_[j])] = static_cast<int>(i) + 1;
    ++ranks_;
    return true;
  }
  return false;
}

}  // namespace

std::vector<int> canonical_order(const Topology& topology) { return Order(topology).find(); }

}  // namespace khoro
