// SPDX-License-Identifier: Apache-2.0
#include "topology/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "topology/index.h"

namespace khoro {
namespace {

constexpr double tolerance = 1e-9;  // relative

class Checker {
 public:
  Checker(const Topology& topology, std::span<const int> gpus, std::span<const Channel> channels)
      : topology_(topology), gpus_(gpus.begin(), gpus.end()), channels_(channels) {}

  std::vector<Diagnostic> check();

 private:
  void report(std::string place, std::string message) {
    found_.push_back({0, std::move(place), std::move(message)});
  }
  std::string name_of(int site) const;
  bool exists(int site) const { return site >= 0 && at(site) < topology_.sites.size(); }
  void check_channel(const Channel& channel, const std::string& place);
  void check_ring(const Channel& channel, const std::string& place);
  void check_tree(const Channel& channel, const std::string& place);
  bool check_hop(const Hop& hop, const std::string& place);
  bool may_relay(const Hop& hop, int site) const;
  void check_roots();
  void check_loads();

  const Topology& topology_;
  std::set<int> gpus_;
  std::span<const Channel> channels_;
  std::vector<Diagnostic> found_;
};

std::string Checker::name_of(int site) const {
  return exists(site) ? topology_.site(site).name : "site " + std::to_string(site);
}

std::vector<Diagnostic> Checker::check() {
  for (std::size_t i = 0; i < channels_.size(); ++i)
    check_channel(channels_[i], "channel " + std::to_string(i));
  check_roots();
  if (found_.empty()) check_loads();
  return std::move(found_);
}

void Checker::check_channel(const Channel& channel, const std::string& place) {
  if (!std::isfinite(channel.bytes_per_second) || channel.bytes_per_second <= 0)
    report(place, fmt::format("its rate is {}", channel.bytes_per_second));
  bool connected = true;
  for (std::size_t i = 0; i < channel.hops.size(); ++i)
    connected &= check_hop(channel.hops[i], fmt::format("{} hop {}", place, i));
  if (!connected) return;
  channel.kind == ChannelKind::ring ? check_ring(channel, place) : check_tree(channel, place);
}

void Checker::check_ring(const Channel& channel, const std::string& place) {
  std::set<int> passed;
  for (std::size_t i = 0; i < channel.hops.size(); ++i) {
    const Hop& hop = channel.hops[i];
    const int next = channel.hops[(i + 1) % channel.hops.size()].from;
    if (hop.to != next)
      report(place, fmt::format("after {} comes {}, not {}", name_of(hop.from), name_of(hop.to),
                                name_of(next)));
    if (!passed.insert(hop.from).second) report(place, name_of(hop.from) + " comes twice");
  }
  for (int gpu : gpus_)
    if (!passed.count(gpu)) report(place, name_of(gpu) + " is left out");
  if (!channel.hops.empty() && channel.hops.front().from != channel.root)
    report(place, "does not begin with its root " + name_of(channel.root));
}

void Checker::check_tree(const Channel& channel, const std::string& place) {
  std::set<int> reached{channel.root};
  for (const Hop& hop : channel.hops) {
    if (!reached.count(hop.from))
      report(place, name_of(hop.from) + " sends before anything reaches it");
    if (!reached.insert(hop.to).second) report(place, name_of(hop.to) + " is reached twice");
  }
  for (int gpu : gpus_)
    if (!reached.count(gpu)) report(place, name_of(gpu) + " is not reached");
}

bool Checker::may_relay(const Hop& hop, int site) const {
  switch (topology_.site(site).kind) {
    case SiteKind::cpu:
    case SiteKind::bridge:
    case SiteKind::fabric:
      return true;
    case SiteKind::gpu:
      return false;
    default:
      return topology_.site(hop.from).machine != topology_.site(hop.to).machine;
  }
}

/// False if nothing more can be said of the channel.
bool Checker::check_hop(const Hop& hop, const std::string& place) {
  for (int end : {hop.from, hop.to})
    if (!gpus_.count(end)) {
      report(place, name_of(end) + " is none of the GPUs");
      return false;
    }
  int here = hop.from;
  for (std::size_t i = 0; i < hop.route.size(); ++i) {
    const int index = hop.route[i];
    if (index < 0 || at(index) >= topology_.links.size()) {
      report(place, fmt::format("there is no link {}", index));
      return false;
    }
    const Link& link = topology_.links[at(index)];
    if (link.from != here) {
      report(place,
             fmt::format("link {} leaves {}, not {}", index, name_of(link.from), name_of(here)));
      return false;
    }
    here = link.to;
    if (i + 1 < hop.route.size() && !may_relay(hop, here))
      report(place, name_of(here) + " does not relay");
  }
  if (here != hop.to)
    report(place, fmt::format("the route ends at {}, not {}", name_of(here), name_of(hop.to)));
  return here == hop.to;
}

void Checker::check_roots() {
  std::map<int, double> rates;  // of trees, by root
  for (const Channel& channel : channels_)
    if (channel.kind == ChannelKind::tree) rates[channel.root] += channel.bytes_per_second;
  if (rates.empty()) return;
  const double first = rates.begin()->second;
  for (int gpu : gpus_) {
    const double rate = rates.count(gpu) ? rates.at(gpu) : 0;
    if (std::abs(rate - first) > tolerance * first)
      report(name_of(gpu), fmt::format("trees from it carry {:g} bytes/s, those from {} {:g}", rate,
                                       name_of(rates.begin()->first), first));
  }
}

void Checker::check_loads() {
  const std::vector<double> loads = loads_of(topology_, channels_);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Link& link = topology_.links[i];
    if (loads[i] > link.bytes_per_second * (1 + tolerance))
      report(fmt::format("link {} from {} to {}", i, name_of(link.from), name_of(link.to)),
             fmt::format("carries {:g} bytes/s of {:g}", loads[i], link.bytes_per_second));
  }
}

}  // namespace

std::vector<double> loads_of(const Topology& topology, std::span<const Channel> channels) {
  std::vector<double> loads(topology.links.size());
  for (const Channel& channel : channels)
    for (const Hop& hop : channel.hops)
      for (int link : hop.route) loads[at(link)] += channel.bytes_per_second;
  return loads;
}

double bus_bandwidth(std::span<const Channel> channels, std::size_t gpus) {
  double rings = 0, trees = 0;
  for (const Channel& channel : channels)
    (channel.kind == ChannelKind::ring ? rings : trees) += channel.bytes_per_second;
  const auto count = static_cast<double>(gpus);
  return rings + (gpus > 0 ? trees * (count - 1) / count : 0);
}

std::vector<Diagnostic> check_channels(const Topology& topology, std::span<const int> gpus,
                                       std::span<const Channel> channels) {
  return Checker(topology, gpus, channels).check();
}

}  // namespace khoro
