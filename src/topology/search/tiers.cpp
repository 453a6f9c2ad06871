// SPDX-License-Identifier: Apache-2.0
#include "topology/search/tiers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "topology/index.h"
#include "topology/search/cycles.h"
#include "topology/search/gates.h"
#include "topology/search/parts.h"
#include "topology/search/spread.h"

namespace khoro {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr int most_ordered = 64;  // parts for which an order is searched for
/// Of what a GPU has: shares that differ by less are one.
constexpr double close = 1e-4;
/// Of all trees together: more would take too much memory.
constexpr std::size_t most_hops = 16'000'000;

/// From a part to the next: which gates some of the data takes, out of the one and into the other.
struct Track {
  std::size_t out = 0;  // gates
  std::size_t in = 0;
  double until = 0;  // of all data, in order; at last 1
};

struct Crossings {
  std::vector<Track> tracks;
  double rate = 0;  // bytes per second, of all
};

/// By the numbers of gates of one network, the rates of those on each side.
struct Side {
  std::vector<std::pair<std::size_t, double>> gates;
  double rate = 0;
};

std::map<int, Side> by_network(const GraphPart& part, const std::vector<Gate>& gates) {
  std::map<int, Side> sides;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    Side& side = sides[part.doors[at(gates[i].door)].network];
    side.gates.emplace_back(i, gates[i].rate);
    side.rate += gates[i].rate;
  }
  return sides;
}

/// On each network that both sides are on, data is divided on either side as its gates are fast.
Crossings crossings_between(const std::map<int, Side>& from, const std::map<int, Side>& to) {
  Crossings found;
  for (const auto& [network, out] : from) {
    const auto in = to.find(network);
    if (in == to.end()) continue;
    const double rate = std::min(out.rate, in->second.rate);
    std::size_t i = 0, j = 0;
    double out_until = out.gates[0].second / out.rate;
    double in_until = in->second.gates[0].second / in->second.rate;
    while (i < out.gates.size() && j < in->second.gates.size()) {
      const double until = std::min(out_until, in_until);
      found.tracks.push_back(
          {out.gates[i].first, in->second.gates[j].first, found.rate + rate * until});
      if (out_until < until + 1e-9 && ++i < out.gates.size())
        out_until += out.gates[i].second / out.rate;
      if (in_until < until + 1e-9 && ++j < in->second.gates.size())
        in_until += in->second.gates[j].second / in->second.rate;
    }
    found.rate += rate;
  }
  for (Track& track : found.tracks) track.until /= found.rate;
  if (!found.tracks.empty()) found.tracks.back().until = 1;
  return found;
}

/// What is in order and ends at `until`: which one has a place, and where in it that is.
template <class Ends>
std::pair<std::size_t, double> find_place(double place, std::size_t count, const Ends& until) {
  std::size_t i = 0;
  while (i + 1 < count && until(i) <= place) ++i;
  const double begin = i == 0 ? 0 : until(i - 1);
  return {i, std::clamp((place - begin) / (until(i) - begin), 0.0, 1.0)};
}

class Tiers {
 public:
  explicit Tiers(const Graph& graph) : graph_(graph), parts_(parts_of(graph)) {}

  std::vector<Channel> trees() {
    if (parts_.size() < 2 || !find_gates() || !find_order()) return {};
    for (std::size_t i = 0; i < order_.size(); ++i) spread_in(i);
    if (scale_ <= 0) return {};
    return channels();
  }

 private:
  /// Kinds of a part, and of those before and after it.
  using Place = std::tuple<int, int, int>;

  const GraphPart& part(std::size_t i) const { return parts_[at(order_[i % order_.size()])]; }
  Place place(std::size_t i) const {
    return {part(i + order_.size() - 1).kind, part(i).kind, part(i + 1).kind};
  }
  const std::vector<Gate>& gates(const GraphPart& part) const { return gates_.at(part.kind); }
  const Crossings& crossings(const GraphPart& from, const GraphPart& to) {
    const auto [found, is_new] = crossings_.try_emplace({from.kind, to.kind});
    if (is_new) found->second = crossings_between(sides_.at(from.kind), sides_.at(to.kind));
    return found->second;
  }
  /// From where part `i` is to the next.
  const Crossings& crossings_from(std::size_t i) { return crossings(part(i), part(i + 1)); }
  double entering(const GraphPart& part) const { return graph_.gpus - part.graph.gpus; }

  bool find_gates();
  bool find_order();
  double slowest(const std::vector<int>& order);
  void spread_in(std::size_t i);
  /// With a tree from each GPU alone where more would have more hops than there may be.
  std::vector<Channel> channels();
  std::vector<double> ends_of_shares(std::size_t origin);
  void add_ends_within(double first, double last, const std::vector<Spread::Tree>& trees,
                       std::vector<double>& ends) const;
  Channel channel(std::size_t origin, double place);
  void append_tree(Channel& channel, std::size_t i, int gpu, double place);
  Hop crossing(std::size_t i, const Track& track) const;
  LinkPath route(const GraphPart& part, const std::vector<int>& edges) const;
  static std::size_t tree_at(const std::vector<Spread::Tree>& trees, double place);

  const Graph& graph_;
  std::vector<GraphPart> parts_;
  std::vector<int> order_;
  double share_ = 0;                          // bytes per second from each GPU, as networks allow
  double scale_ = 1;                          // as links of parts allow
  bool one_each_ = false;                     // a tree from each GPU: more would be too many
  std::map<int, std::vector<Gate>> gates_;    // by kind
  std::map<int, std::map<int, Side>> sides_;  // by kind, by network
  std::map<std::pair<int, int>, Crossings> crossings_;
  std::map<Place, Spread> spreads_;
  std::map<std::tuple<std::size_t, int, std::size_t>, std::vector<Hop>> hops_;
};

bool Tiers::find_gates() {
  for (const GraphPart& part : parts_) {
    if (gates_.contains(part.kind)) continue;
    std::vector<Gate> gates = gates_of(graph_, part);
    if (gates.empty()) return false;
    sides_[part.kind] = by_network(part, gates);
    gates_[part.kind] = std::move(gates);
  }
  return true;
}

/// How long what each GPU has takes to get from one part to the next of an order, at the slowest
/// place.
double Tiers::slowest(const std::vector<int>& order) {
  double slowest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const GraphPart& to = parts_[at(order[(i + 1) % order.size()])];
    const double rate = crossings(parts_[at(order[i])], to).rate;
    slowest = std::max(slowest, rate > 0 ? entering(to) / rate : infinite);
  }
  return slowest;
}

/// Parts in the order of their numbers, unless another is faster.
bool Tiers::find_order() {
  const int count = static_cast<int>(parts_.size());
  for (int i = 0; i < count; ++i) order_.push_back(i);
  double best = slowest(order_);
  if (std::any_of(parts_.begin(), parts_.end(),
                  [](const GraphPart& part) { return part.kind > 0; }) &&
      count <= most_ordered && count > 2) {
    Costs costs(count);
    double least = infinite;
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to) {
        const GraphPart& next = parts_[at(to)];
        costs(from, to) = entering(next) / std::max(crossings(parts_[at(from)], next).rate, 1.0);
        least = std::min(least, costs(from, to));
      }
    // The slowest counts, so what is slower counts far more.
    for (double& cost : costs.values) cost = std::pow(std::min(cost / least, 1e3), 8);
    for (const Cycle& cycle : cheap_cycles(costs))
      if (const double found = slowest(cycle); found < best * (1 - 1e-9)) {
        best = found;
        order_ = cycle;
      }
  }
  share_ = best > 0 ? 1 / best : 0;
  return share_ > 0;
}

/// How what enters a part, and what its GPUs have, reaches all of its GPUs.
void Tiers::spread_in(std::size_t i) {
  if (spreads_.contains(place(i))) return;
  const GraphPart& here = part(i);
  std::vector<double> rates(at(here.graph.gpus), share_);
  std::vector<double> taken(here.edges.size());
  double before = 0;
  for (const Track& track : crossings_from(i + order_.size() - 1).tracks) {
    const Gate& gate = gates(here)[track.in];
    const double rate = share_ * entering(here) * (track.until - before);
    rates[at(gate.gpu)] += rate;
    for (int edge : gate.in) taken[at(edge)] += rate;
    before = track.until;
  }
  before = 0;
  for (const Track& track : crossings_from(i).tracks) {
    const double rate = share_ * entering(part(i + 1)) * (track.until - before);
    for (int edge : gates(here)[track.out].out) taken[at(edge)] += rate;
    before = track.until;
  }
  Spread found = spread(here, rates, taken);
  scale_ = std::min(scale_, found.scale);
  spreads_[place(i)] = std::move(found);
}

void Tiers::add_ends_within(double first, double last, const std::vector<Spread::Tree>& trees,
                            std::vector<double>& ends) const {
  double share = 0;
  for (const Spread::Tree& tree : trees)
    ends.push_back(first + (last - first) * (share += tree.share));
}

/// Where the data of a part is cut, so that each piece goes one way: first what belongs to each
/// GPU, then wherever on its way another track or tree begins.
std::vector<double> Tiers::ends_of_shares(std::size_t origin) {
  const int gpus = part(origin).graph.gpus;
  std::vector<double> ends;
  if (one_each_) {
    for (int gpu = 1; gpu <= gpus; ++gpu) ends.push_back(static_cast<double>(gpu) / gpus);
    return ends;
  }
  for (int gpu = 0; gpu < gpus; ++gpu)
    add_ends_within(static_cast<double>(gpu) / gpus, (gpu + 1.0) / gpus,
                    spreads_.at(place(origin)).trees[at(gpu)], ends);
  std::map<Place, bool> seen;
  for (std::size_t i = origin; i < origin + order_.size() - 1; ++i) {
    if (std::exchange(seen[place(i + 1)], true)) continue;
    double before = 0;
    for (const Track& track : crossings_from(i).tracks) {
      const int gpu = gates(part(i + 1))[track.in].gpu;
      add_ends_within(before, track.until, spreads_.at(place(i + 1)).trees[at(gpu)], ends);
      before = track.until;
    }
  }
  std::sort(ends.begin(), ends.end());
  std::vector<double> kept;
  for (double end : ends) {
    const double owner = std::round(end * gpus) / gpus;
    if (std::abs(end - owner) < close / gpus) end = owner;
    if (end > 0 && (kept.empty() || end > kept.back() + close / gpus)) kept.push_back(end);
  }
  return kept;
}

LinkPath Tiers::route(const GraphPart& part, const std::vector<int>& edges) const {
  LinkPath links;
  for (int edge : edges) {
    const LinkPath& more = graph_.edge(part.edges[at(edge)]).links;
    links.insert(links.end(), more.begin(), more.end());
  }
  return links;
}

Hop Tiers::crossing(std::size_t i, const Track& track) const {
  const GraphPart &from = part(i), &to = part(i + 1);
  const Gate &out = gates(from)[track.out], &in = gates(to)[track.in];
  Hop hop{graph_.site(from.vertices[at(out.gpu)]), graph_.site(to.vertices[at(in.gpu)]),
          route(from, out.out)};
  for (int edge : {from.doors[at(out.door)].out, to.doors[at(in.door)].in}) {
    const LinkPath& more = graph_.edge(edge).links;
    hop.route.insert(hop.route.end(), more.begin(), more.end());
  }
  const LinkPath inside = route(to, in.in);
  hop.route.insert(hop.route.end(), inside.begin(), inside.end());
  return hop;
}

std::size_t Tiers::tree_at(const std::vector<Spread::Tree>& trees, double place) {
  std::size_t i = 0;
  for (double end = trees[0].share; i + 1 < trees.size() && end <= place; end += trees[i].share)
    ++i;
  return i;
}

void Tiers::append_tree(Channel& channel, std::size_t i, int gpu, double within) {
  const GraphPart& here = part(i);
  const std::vector<Spread::Tree>& trees = spreads_.at(place(i)).trees[at(gpu)];
  const std::size_t index = tree_at(trees, within);
  const auto [hops, is_new] = hops_.try_emplace({i % order_.size(), gpu, index});
  if (is_new)
    for (const Hop& hop : trees[index].hops)
      hops->second.push_back({graph_.site(here.vertices[at(hop.from)]),
                              graph_.site(here.vertices[at(hop.to)]), route(here, hop.route)});
  channel.hops.insert(channel.hops.end(), hops->second.begin(), hops->second.end());
}

/// The way of what is at a place of the data of a part.
Channel Tiers::channel(std::size_t origin, double place) {
  const GraphPart& first = part(origin);
  const int gpu = std::min(static_cast<int>(place * first.graph.gpus), first.graph.gpus - 1);
  Channel channel{ChannelKind::tree, graph_.site(first.vertices[at(gpu)]), {}, 0};
  channel.hops.reserve(at(graph_.gpus - 1));
  append_tree(channel, origin, gpu, place * first.graph.gpus - gpu);
  for (std::size_t i = origin; i < origin + order_.size() - 1; ++i) {
    const std::vector<Track>& tracks = crossings_from(i).tracks;
    const auto [track, within] =
        find_place(place, tracks.size(), [&](std::size_t index) { return tracks[index].until; });
    channel.hops.push_back(crossing(i, tracks[track]));
    append_tree(channel, i + 1, gates(part(i + 1))[tracks[track].in].gpu, within);
  }
  return channel;
}

std::vector<Channel> Tiers::channels() {
  std::vector<Channel> found;
  std::size_t hops = 0;
  for (std::size_t origin = 0; origin < order_.size(); ++origin) {
    double before = 0;
    for (double end : ends_of_shares(origin)) {
      Channel made = channel(origin, (before + end) / 2);
      made.bytes_per_second = share_ * scale_ * part(origin).graph.gpus * (end - before);
      before = end;
      if ((hops += made.hops.size()) > most_hops)
        return std::exchange(one_each_, true) ? std::vector<Channel>() : channels();
      const auto same = std::find_if(found.rbegin(), found.rend(), [&](const Channel& other) {
        return other.root != made.root || other.hops == made.hops;
      });
      if (same != found.rend() && same->root == made.root)
        same->bytes_per_second += made.bytes_per_second;
      else
        found.push_back(std::move(made));
    }
  }
  return found;
}

}  // namespace

std::vector<Channel> trees_over_networks(const Graph& graph) { return Tiers(graph).trees(); }

}  // namespace khoro
