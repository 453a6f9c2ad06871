// SPDX-License-Identifier: Apache-2.0
#include "topology/search/rings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "topology/index.h"
#include "topology/search/packing.h"
#include "topology/search/routes.h"

namespace khoro {
namespace {

constexpr int exact_always = 12;  // GPUs for which the cheapest ring costs next to nothing to find
constexpr int exact_at_all = 16;
constexpr int exact_rounds = 2;   // beyond `exact_always`
constexpr int first_starts = 3;   // of a ring to begin with; one after another adds what one lacks
constexpr double close = 1e-3;    // to the best: more would cost more than it gains
constexpr double nothing = 1e-6;  // of the target
// Rows beyond which the linear program would take too much memory and time.
constexpr std::size_t most_rows = 2000;

/// A ring as the linear program sees it.
struct Ring {
  Cycle order;
  std::vector<Routes::Path> paths;
  Packing::Column loads;
};

class RingSearch {
 public:
  RingSearch(const Graph& graph, double target)
      : graph_(graph),
        target_(target),
        limit_(target),
        is_large_(graph.edges.size() > most_rows),
        packing_(is_large_ ? std::vector<double>() : shares()) {}

  void run();
  Rings best(int most) const;

 private:
  std::vector<double> shares() const;
  std::vector<double> with_distances(const std::vector<double>& prices) const;
  std::optional<std::size_t> add(const Cycle& order, const Routes& routes);
  void begin();
  bool improve();
  int add_cheap(const std::vector<Cycle>& cycles, const Routes& routes);
  void use_limit(double cheapest);
  static std::vector<std::size_t> largest(const std::vector<double>& amounts, int most);
  std::vector<double> amounts_of(const std::vector<std::size_t>& kept) const;
  Channel channel(const Ring& ring, double rate) const;

  const Graph& graph_;
  double target_;  // bytes per second; the unit of the program
  double limit_;
  bool is_large_;
  Packing packing_;
  std::vector<Ring> rings_;
  std::map<Packing::Column, std::size_t> known_;
  std::vector<double> first_amounts_;  // of the rings to begin with
  int exact_left_ = exact_rounds;
};

/// Capacities as shares of the target.
std::vector<double> RingSearch::shares() const {
  std::vector<double> shares;
  for (const Graph::Edge& edge : graph_.edges)
    shares.push_back(static_cast<double>(edge.capacity) / target_);
  return shares;
}

/// Links that cost nothing still cost a little, or rings would take detours over them.
std::vector<double> RingSearch::with_distances(const std::vector<double>& prices) const {
  std::vector<double> all = prices;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = std::max(all[i], 0.0) + 1e-7 * static_cast<double>(graph_.edges[i].links.size());
  return all;
}

/// Index of the ring, or of the one over the same links that is known. Nothing if it is no ring.
std::optional<std::size_t> RingSearch::add(const Cycle& order, const Routes& routes) {
  Ring ring{order, {}, {}};
  std::map<int, double> loads;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int to = order[(i + 1) % order.size()];
    if (routes.costs()(order[i], to) >= Routes::unreachable) return std::nullopt;
    ring.paths.push_back(routes.path(order[i], to));
    for (int edge : ring.paths.back()) loads[edge] += 1;
  }
  ring.loads.assign(loads.begin(), loads.end());
  const auto [found, is_new] = known_.try_emplace(ring.loads, rings_.size());
  if (!is_new) return found->second;
  if (!is_large_) packing_.add(ring.loads);
  rings_.push_back(std::move(ring));
  return found->second;
}

/// Rings to begin with: links grow dearer as rings before use them.
void RingSearch::begin() {
  std::vector<double> used(graph_.edges.size());
  const std::vector<double> capacity = shares();
  const int rounds = std::min(2 * graph_.gpus, 24);
  const int starts = graph_.gpus > exact_at_all ? first_starts : exact_at_all;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> prices;
    for (std::size_t i = 0; i < used.size(); ++i)
      prices.push_back(std::exp(3 * used[i] / capacity[i]) / (capacity[i] * 16 * graph_.gpus));
    const Routes routes(graph_, prices);
    const auto ring = add(cheap_cycles(routes.costs(), starts).front(), routes);
    if (!ring) continue;
    const Packing::Column& loads = rings_[*ring].loads;
    double rate = 1;
    for (const auto& [edge, load] : loads) rate = std::min(rate, capacity[at(edge)] / load / 2);
    for (const auto& [edge, load] : loads) used[at(edge)] += rate * load;
    first_amounts_.resize(rings_.size());
    first_amounts_[*ring] += rate;
  }
  double fullest = 1;
  for (std::size_t i = 0; i < used.size(); ++i) fullest = std::max(fullest, used[i] / capacity[i]);
  for (double& amount : first_amounts_) amount /= fullest;
}

int RingSearch::add_cheap(const std::vector<Cycle>& cycles, const Routes& routes) {
  int added = 0;
  for (const Cycle& cycle : cycles)
    if (cost_of(cycle, routes.costs()) < 1 - close / 10 && added < 2 * graph_.gpus) {
      const std::size_t known = rings_.size();
      add(cycle, routes);
      added += rings_.size() > known;
    }
  return added;
}

/// Prices at which no ring costs less than 1 are worth at least as much as rings can carry.
void RingSearch::use_limit(double cheapest) {
  const double slack = 1e-7 * static_cast<double>(graph_.edges.size());
  if (cheapest > 0) limit_ = std::min(limit_, target_ * packing_.value() / cheapest * (1 + slack));
}

/// Adds rings that are worth it; false if there are none, or not enough to matter.
bool RingSearch::improve() {
  const Routes routes(graph_, with_distances(packing_.prices()));
  if (graph_.gpus > exact_always) {
    const int added = add_cheap(cheap_cycles(routes.costs()), routes);
    if (added > 0 || graph_.gpus > exact_at_all || exact_left_-- == 0) return added > 0;
  }
  const std::vector<Cycle> cycles = cheapest_cycles(routes.costs());
  use_limit(cost_of(cycles.front(), routes.costs()));
  return target_ * packing_.value() < limit_ * (1 - close) && add_cheap(cycles, routes) > 0;
}

void RingSearch::run() {
  begin();
  if (is_large_) return;
  packing_.solve();
  const int most_rounds = graph_.gpus > exact_at_all ? 8 : 200;
  for (int round = 0; round < most_rounds && packing_.value() < 1 - close; ++round) {
    if (!improve()) break;
    packing_.solve();
  }
}

Channel RingSearch::channel(const Ring& ring, double rate) const {
  Channel channel{ChannelKind::ring, graph_.site(ring.order.front()), {}, rate};
  for (std::size_t i = 0; i < ring.order.size(); ++i)
    channel.hops.push_back({graph_.site(ring.order[i]),
                            graph_.site(ring.order[(i + 1) % ring.order.size()]),
                            graph_.route(ring.paths[i])});
  return channel;
}

/// Indices of the `most` rings that carry most.
std::vector<std::size_t> RingSearch::largest(const std::vector<double>& amounts, int most) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < amounts.size(); ++i)
    if (amounts[i] > nothing) kept.push_back(i);
  std::stable_sort(kept.begin(), kept.end(),
                   [&](std::size_t a, std::size_t b) { return amounts[a] > amounts[b]; });
  kept.resize(std::min(kept.size(), at(most)));
  return kept;
}

/// The best amounts for these rings alone.
std::vector<double> RingSearch::amounts_of(const std::vector<std::size_t>& kept) const {
  Packing packing(shares());
  for (std::size_t i : kept) packing.add(rings_[i].loads);
  packing.solve();
  const std::vector<double> found = packing.amounts();
  std::vector<double> amounts(rings_.size());
  for (std::size_t i = 0; i < kept.size(); ++i) amounts[kept[i]] = found[i];
  return amounts;
}

/// Rates shrink a little where rounding would overload a link.
Rings RingSearch::best(int most) const {
  std::vector<double> amounts = is_large_ ? first_amounts_ : packing_.amounts();
  const std::vector<std::size_t> kept = largest(amounts, most);
  if (kept.size() == at(most) && !is_large_) amounts = amounts_of(kept);
  std::vector<double> load(graph_.edges.size());
  for (std::size_t i : kept)
    for (const auto& [edge, times] : rings_[i].loads) load[at(edge)] += times * amounts[i];
  const std::vector<double> capacity = shares();
  double scale = 1;
  for (std::size_t i = 0; i < load.size(); ++i)
    if (load[i] > capacity[i]) scale = std::min(scale, capacity[i] / load[i]);
  Rings found{{}, 0, limit_};
  for (std::size_t i : kept) {
    if (amounts[i] <= nothing) continue;
    found.channels.push_back(channel(rings_[i], target_ * amounts[i] * scale));
    found.bytes_per_second += found.channels.back().bytes_per_second;
  }
  return found;
}

}  // namespace

Rings pack_rings(const Graph& graph, double target, int most) {
  if (graph.gpus < 2 || target <= 0) return {};
  RingSearch search(graph, target);
  search.run();
  return search.best(most);
}

}  // namespace khoro
