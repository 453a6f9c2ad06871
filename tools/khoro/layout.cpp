// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "topology/index.h"

namespace khoro::tool {
namespace {

bool is_gpu(const Topology& topology, int site) {
  return topology.site(site).kind == SiteKind::gpu;
}

}  // namespace

Layout::Layout(const Topology& topology)
    : topology_(topology),
      parents_(topology.parents()),
      children_(parents_.size()),
      places_(topology.sites.size()) {
  for (std::size_t i = 0; i < parents_.size(); ++i)
    if (parents_[i] >= 0) children_[at(parents_[i])].push_back(static_cast<int>(i));
  for (const int cpu : topology.sites_of(SiteKind::cpu)) depth_ = std::max(depth_, deepest(cpu));
  std::size_t ports = 0;
  for (const int nic : topology.sites_of(SiteKind::nic))
    ports = std::max(ports, children_[at(nic)].size());
  std::map<int, int> cpus;  // of each machine
  for (const int cpu : topology.sites_of(SiteKind::cpu))
    if (++cpus[topology.site(cpu).machine] > 2) cpu_y_ = margin + highest_arch;
  nic_y_ = cpu_y_ + depth_ * row;
  gpu_y_ = nic_y_;
  if (ports > 0)
    gpu_y_ += (box_height + port_height) / 2 + port_height * static_cast<double>(ports);
  for (const int cpu : topology.sites_of(SiteKind::cpu)) put(cpu, 0);
  put_unattached();
  height_ = gpu_y_ + box_height / 2 + margin;
  put_arcs();
  put_fabrics();
}

double Layout::y_of(int site, int level) const {
  if (is_gpu(topology_, site)) return gpu_y_;
  return topology_.site(site).kind == SiteKind::nic ? nic_y_ : cpu_y_ + level * row;
}

int Layout::deepest(int site) const {
  int rows = 0;
  for (const int child : children_[at(site)])
    if (topology_.site(child).kind != SiteKind::port) rows = std::max(rows, 1 + deepest(child));
  return rows;
}

void Layout::put_column(int site, double y) {
  places_[at(site)] = {margin + (next_column_ + .5) * column, y, box_width};
  ++next_column_;
}

void Layout::put(int site, int level) {
  const double left = next_column_;
  for (const int child : children_[at(site)])
    if (topology_.site(child).kind != SiteKind::port) put(child, level + 1);
  if (next_column_ == left) {
    put_column(site, y_of(site, level));
  } else {
    places_[at(site)] = {margin + (left + next_column_) / 2 * column, y_of(site, level), box_width};
    if (topology_.site(site).kind == SiteKind::cpu)
      places_[at(site)].width = (next_column_ - left) * column - (column - box_width);
  }
  put_ports(site);
}

void Layout::put_ports(int nic) {
  double y = of(nic).y + (box_height + port_height) / 2;
  for (const int child : children_[at(nic)]) {
    if (topology_.site(child).kind != SiteKind::port) continue;
    places_[at(child)] = {of(nic).x, y, box_width};
    y += port_height;
  }
}

void Layout::put_unattached() {
  for (std::size_t i = 0; i < parents_.size(); ++i) {
    const int site = static_cast<int>(i);
    const SiteKind kind = topology_.site(site).kind;
    if (parents_[i] < 0 && kind != SiteKind::cpu && kind != SiteKind::fabric)
      put_column(site, is_gpu(topology_, site) ? gpu_y_ : nic_y_);
  }
}

void Layout::put_arcs() {
  std::map<int, std::set<int>> peers;
  for (const Link& link : topology_.links) {
    if (!is_gpu(topology_, link.from) || !is_gpu(topology_, link.to) || link.from == link.to)
      continue;
    peers[link.from].insert(link.to);
    peers[link.to].insert(link.from);
    height_ = std::max(height_, gpu_y_ + box_height / 2 + depth(link.from, link.to) + margin);
  }
  for (const auto& [gpu, others] : peers) {
    // To the left the nearest first, then to the right the farthest: arcs that leave in one
    // direction lie in one another.
    std::vector<int> order(others.begin(), others.end());
    const double here = of(gpu).x;
    std::sort(order.begin(), order.end(), [&](int one, int other) {
      const double x = of(one).x, y = of(other).x;
      return (x > here) != (y > here) ? x < y : x > y;
    });
    const double step = std::min(
        14., (box_width - 16) / static_cast<double>(std::max(order.size(), std::size_t{1})));
    double x = here - step * static_cast<double>(order.size() - 1) / 2;
    for (const int other : order) {
      arc_ends_[{gpu, other}] = x;
      x += step;
    }
  }
}

double Layout::arc_end(int gpu, int other) const {
  const auto end = arc_ends_.find({gpu, other});
  return end == arc_ends_.end() ? of(gpu).x : end->second;
}

double Layout::depth(int one, int other) const {
  return 20 + std::abs(of(one).x - of(other).x) * .16;
}

void Layout::put_fabrics() {
  const auto fabrics = topology_.sites_of(SiteKind::fabric);
  if (fabrics.empty()) return;
  const double y = std::max(height_ - margin + box_height, gpu_y_ + 1.4 * row);
  std::map<int, std::pair<double, double>> ends;
  for (const Link& link : topology_.links) {
    if (topology_.site(link.from).kind != SiteKind::fabric) continue;
    auto& [left, right] =
        ends.try_emplace(link.from, std::numeric_limits<double>::max(), 0).first->second;
    left = std::min(left, of(link.to).x);
    right = std::max(right, of(link.to).x);
  }
  for (const int fabric : fabrics) {
    const auto found = ends.find(fabric);
    const auto [left, right] = found == ends.end() ? std::pair{margin, margin} : found->second;
    places_[at(fabric)] = {(left + right) / 2, y, right - left + box_width};
  }
  height_ = y + box_height / 2 + margin;
}

}  // namespace khoro::tool
