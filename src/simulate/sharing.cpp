// SPDX-License-Identifier: Apache-2.0
#include "simulate/sharing.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace khoro {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
/// Of the time that has passed: what rounding may set apart of ends that are one.
constexpr double at_once = 1e-12;

}  // namespace

Sharing::Sharing(std::vector<double> capacities) : wires_(capacities.size()) {
  for (std::size_t i = 0; i < wires_.size(); ++i) wires_[i].capacity = capacities[i];
}

std::size_t Sharing::new_place() {
  if (free_.empty()) {
    flows_.emplace_back();
    return flows_.size() - 1;
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  return place;
}

std::size_t Sharing::add(const std::vector<int>& links, double bytes) {
  const std::size_t place = new_place();
  Flow& flow = flows_[place];
  flow.id = next_id_++;
  flow.links = &links;
  flow.left = bytes;
  flow.since = now_;
  flow.rate = 0;
  for (const int link : links) {
    wire(link).flows.push_back(place);
    changed_.push_back(link);
  }
  if (links.empty()) ends_.push({now_, place, ++flow.changes});
  return flow.id;
}

/// From the links that changed on: all flows on a link, and all links of these.
void Sharing::meet_neighbours() {
  ++round_;
  met_wires_.clear();
  met_flows_.clear();
  const auto meet = [this](int link) {
    if (std::exchange(wire(link).met, round_) != round_) met_wires_.push_back(link);
  };
  for (const int link : changed_) meet(link);
  changed_.clear();
  for (std::size_t i = 0; i < met_wires_.size(); ++i)
    for (const std::size_t place : wire(met_wires_[i]).flows)
      if (std::exchange(flows_[place].met, round_) != round_) {
        met_flows_.push_back(place);
        for (const int link : *flows_[place].links) meet(link);
      }
}

void Sharing::give(Flow& flow, double rate) {
  if (rate == flow.rate) return;
  flow.left = std::max(flow.left - flow.rate * (now_ - flow.since), 0.0);
  flow.since = now_;
  flow.rate = rate;
  const auto place = static_cast<std::size_t>(&flow - flows_.data());
  ends_.push({now_ + flow.left / rate, place, ++flow.changes});
}

/// The link that gives each of its flows least decides for these. What a link gives can only grow
/// while others are decided, so what waits in the queue may be too little, never too much.
void Sharing::divide() {
  using Offer = std::pair<double, int>;  // to each of its flows, link
  std::vector<Offer> all;
  for (const int link : met_wires_) {
    Wire& here = wire(link);
    here.left = here.capacity;
    here.users = static_cast<int>(here.flows.size());
    if (here.users > 0) all.emplace_back(here.left / here.users, link);
  }
  Earliest<Offer> offers(std::greater<>(), std::move(all));
  ++round_;  // flows that are met again have their rate
  while (!offers.empty()) {
    const auto [offer, link] = offers.top();
    offers.pop();
    const Wire& here = wire(link);
    if (here.users == 0) continue;
    if (const double least = here.left / here.users; least > offer) {
      offers.emplace(least, link);
      continue;
    }
    for (const std::size_t place : here.flows) {
      if (std::exchange(flows_[place].met, round_) == round_) continue;
      for (const int other : *flows_[place].links) {
        wire(other).left -= offer;
        --wire(other).users;
      }
      give(flows_[place], offer);
    }
  }
}

void Sharing::share() {
  if (changed_.empty()) return;
  meet_neighbours();
  divide();
}

double Sharing::until_next_end() {
  share();
  while (!ends_.empty() && is_over(ends_.top())) ends_.pop();
  return ends_.empty() ? never : std::max(ends_.top().time - now_, 0.0);
}

/// Whether the flow has another rate since, or is gone.
bool Sharing::is_over(const End& end) const noexcept {
  return flows_[end.flow].changes != end.changes;
}

void Sharing::remove(std::size_t place) {
  Flow& flow = flows_[place];
  ++flow.changes;
  for (const int link : *flow.links) {
    std::vector<std::size_t>& there = wire(link).flows;
    *std::find(there.begin(), there.end(), place) = there.back();
    there.pop_back();
    changed_.push_back(link);
  }
  free_.push_back(place);
}

std::vector<std::size_t> Sharing::advance(double seconds) {
  share();
  now_ += seconds;
  std::vector<std::size_t> ended;
  while (!ends_.empty() && ends_.top().time <= now_ * (1 + at_once)) {
    const End end = ends_.top();
    ends_.pop();
    if (is_over(end)) continue;
    ended.push_back(flows_[end.flow].id);
    remove(end.flow);
  }
  std::sort(ended.begin(), ended.end());
  return ended;
}

}  // namespace khoro
