// SPDX-License-Identifier: Apache-2.0
#include "topology/search/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "topology/bound.h"
#include "topology/index.h"
#include "topology/search/closed_form.h"
#include "topology/search/forest.h"
#include "topology/search/rings.h"
#include "topology/search/routes.h"

namespace khoro {
namespace {

constexpr double enough = 0.999;
constexpr int most_ways = 8;    // rings, or trees from a GPU with the least data
constexpr int most_units = 64;  // trees from all GPUs together, per GPU
constexpr int most_gpus_of_trees = 32;

class Spreading {
 public:
  Spreading(const GraphPart& part, const std::vector<double>& rates,
            const std::vector<double>& taken)
      : graph_(part.graph), rates_(rates), taken_(taken) {}

  Spread best() {
    Spread best = stars();
    if (best.scale >= enough || graph_.gpus < 2) return best;
    for (const bool switches : {true, false}) {
      keep(best, paths(switches ? rings_of_switches(graph_, most_ways)
                                : pack_rings(graph_, bound_of(graph_).ring, most_ways).channels));
      if (best.scale >= enough) return best;
    }
    if (graph_.gpus <= most_gpus_of_trees) keep(best, forest());
    return best;
  }

 private:
  static void keep(Spread& best, Spread other) {
    if (other.scale > best.scale) best = std::move(other);
  }

  /// From each GPU straight to each other one.
  Spread stars() const {
    std::vector<double> prices;
    for (const Graph::Edge& edge : graph_.edges)
      prices.push_back(1 / std::max(static_cast<double>(edge.capacity), 1.0));
    const Routes routes(graph_, prices);
    Spread spread;
    for (int root = 0; root < graph_.gpus; ++root) {
      Spread::Tree tree{{}, 1};
      for (int i = 1; i < graph_.gpus; ++i) {
        const int to = (root + i) % graph_.gpus;
        if (routes.costs()(root, to) >= Routes::unreachable) return {};
        tree.hops.push_back({root, to, routes.path(root, to)});
      }
      spread.trees.push_back({std::move(tree)});
    }
    return scaled(std::move(spread));
  }

  /// Along each ring from each GPU on, once around but for the last hop.
  Spread paths(const std::vector<Channel>& rings) const {
    if (rings.empty()) return {};
    const double sum = bus_bandwidth_of(rings);
    Spread spread;
    spread.trees.resize(at(graph_.gpus));
    for (const Channel& ring : rings)
      for (std::size_t first = 0; first < ring.hops.size(); ++first) {
        Spread::Tree tree{{}, ring.bytes_per_second / sum};
        for (std::size_t i = 0; i + 1 < ring.hops.size(); ++i)
          tree.hops.push_back(ring.hops[(first + i) % ring.hops.size()]);
        add(spread.trees[at(ring.hops[first].from)], std::move(tree));
      }
    return scaled(std::move(spread));
  }

  static double bus_bandwidth_of(const std::vector<Channel>& rings) {
    return std::accumulate(rings.begin(), rings.end(), 0.0, [](double sum, const Channel& ring) {
      return sum + ring.bytes_per_second;
    });
  }

  static void add(std::vector<Spread::Tree>& trees, Spread::Tree tree) {
    const auto same = std::find_if(trees.begin(), trees.end(),
                                   [&](const auto& other) { return other.hops == tree.hops; });
    if (same == trees.end())
      trees.push_back(std::move(tree));
    else
      same->share += tree.share;
  }

  /// With the scale that links allow.
  Spread scaled(Spread spread) const {
    std::vector<double> loads = taken_;
    for (std::size_t root = 0; root < spread.trees.size(); ++root)
      for (const Spread::Tree& tree : spread.trees[root])
        for (const Hop& hop : tree.hops)
          for (int edge : hop.route) loads[at(edge)] += rates_[root] * tree.share;
    spread.scale = 1;
    for (std::size_t i = 0; i < loads.size(); ++i)
      if (loads[i] > 0)
        spread.scale =
            std::min(spread.scale, static_cast<double>(graph_.edges[i].capacity) / loads[i]);
    return spread;
  }

  /// Whole numbers about in proportion to the rates.
  std::vector<std::int64_t> weights() const {
    const double least = *std::min_element(rates_.begin(), rates_.end());
    const double sum = std::accumulate(rates_.begin(), rates_.end(), 0.0) / least;
    const auto error = [&](double scale) {
      double worst = 0;
      for (double rate : rates_) {
        const double exact = rate / least * scale;
        worst = std::max(worst, std::abs(std::round(exact) - exact) / exact);
      }
      return worst;
    };
    const double most = std::max(1.0, most_units * graph_.gpus / sum);
    double scale = 1;
    for (double tried = 1; tried <= std::min(most, 16.0); ++tried)
      if (error(tried) < error(scale) * .5) scale = tried;
    std::vector<std::int64_t> weights;
    for (double rate : rates_)
      weights.push_back(std::max<std::int64_t>(std::llround(rate / least * scale), 1));
    return weights;
  }

  /// Trees in what is left of the edges when all runs at a scale.
  Spread forest_at(double scale, const std::vector<std::int64_t>& weights) const {
    Graph rest = graph_;
    std::vector<double> entering(at(graph_.gpus));
    for (std::size_t i = 0; i < rest.edges.size(); ++i) {
      Graph::Edge& edge = rest.edges[i];
      edge.capacity -=
          std::min<std::int64_t>(edge.capacity, std::llround(std::ceil(scale * taken_[i])));
      if (edge.to < graph_.gpus) entering[at(edge.to)] += static_cast<double>(edge.capacity);
    }
    const auto sum =
        static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
    double wanted = 0;  // per unit of weight
    double limit = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto weight = static_cast<double>(weights[i]);
      wanted = std::max(wanted, scale * rates_[i] / weight);
      limit = std::min(limit, entering[i] / (sum - weight));
    }
    const Forest forest = pack_trees(rest, std::min(limit, 1.1 * wanted), most_ways, weights);
    Spread spread;
    spread.trees.resize(at(graph_.gpus));
    for (const Channel& channel : forest.channels)
      add(spread.trees[at(channel.root)],
          {channel.hops, channel.bytes_per_second /
                             (forest.share * static_cast<double>(weights[at(channel.root)]))});
    return forest.channels.empty() ? Spread() : scaled(std::move(spread));
  }

  /// What trees find no room for at full scale may fit when all is a little less.
  Spread forest() const {
    const std::vector<std::int64_t> weights = this->weights();
    Spread best;
    double low = 0, high = 1;
    for (int step = 0; step < 4 && best.scale < enough && high - low > .01; ++step) {
      const double scale = step == 0 ? 1 : (low + high) / 2;
      Spread found = forest_at(scale, weights);
      (found.scale >= scale * enough ? low : high) = scale;
      low = std::max(low, found.scale);
      keep(best, std::move(found));
    }
    return best;
  }

  const Graph& graph_;
  const std::vector<double>& rates_;
  const std::vector<double>& taken_;
};

}  // namespace

Spread spread(const GraphPart& part, const std::vector<double>& rates,
              const std::vector<double>& taken) {
  return Spreading(part, rates, taken).best();
}

}  // namespace khoro
