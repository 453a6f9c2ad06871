// SPDX-License-Identifier: Apache-2.0
// NICs and their ports, CPUs, and the rates that nothing else has set.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "topology/rates.h"
#include "topology/repair/repairs.h"

namespace khoro {
namespace {

/// As many NUMA nodes as Linux knows; each pair of them is joined.
constexpr std::size_t most_joined_cpus = 1024;
constexpr long usual_port_speed = 10'000;  // Mbit/s
constexpr long fastest_port_speed = 1'600'000;

void repair_speeds(Repairs& repairs) {
  for (const int port : repairs.topology.sites_of(SiteKind::port)) {
    const std::string speed(repairs.site(port).fact("speed"));
    long number = leading_number(speed).value_or(0);
    if (number >= 1 && number <= fastest_port_speed) continue;
    const bool in_kbit = number > fastest_port_speed && number / 1000 <= fastest_port_speed;
    number = in_kbit ? number / 1000 : usual_port_speed;
    repairs.tell(
        in_kbit ? Severity::warning : Severity::note, port,
        fmt::format("a speed of {} Mbit/s: taken for {}", speed.empty() ? "?" : speed, number));
    repairs.site(port).facts["speed"] = std::to_string(number);
  }
}

/// What an operating system names alike is one port, wherever it is listed.
void join_listed_twice(Repairs& repairs) {
  const Topology& topology = repairs.topology;
  std::map<std::tuple<int, std::string_view, std::string_view, std::string_view>, int> first;
  std::set<int> told;
  std::vector<bool> dropped(topology.sites.size());
  for (const int port : topology.sites_of(SiteKind::port)) {
    const Site& site = topology.site(port);
    if (site.fact("name").empty()) continue;
    const auto [place, is_new] = first.try_emplace(
        {site.machine, site.fact("name"), site.fact("dev"), site.fact("guid")}, port);
    if (is_new) continue;
    dropped[static_cast<std::size_t>(port)] = true;
    if (told.insert(place->second).second)
      repairs.tell(Severity::note, port, "is listed more than once: one port");
  }
  std::map<int, std::pair<int, int>> ports;  // of each NIC, those that are kept and those that go
  for (const Link& link : topology.links)
    if (link.kind == LinkKind::port && topology.site(link.from).kind == SiteKind::nic) {
      auto& [kept, gone] = ports[link.from];
      ++(dropped[static_cast<std::size_t>(link.to)] ? gone : kept);
    }
  for (const auto& [nic, count] : ports)
    if (count.first == 0) dropped[static_cast<std::size_t>(nic)] = true;
  repairs.remove(dropped, {});
}

/// "0000:0c:00" of "0000:0c:00.1".
std::string_view device_of(std::string_view busid) { return busid.substr(0, busid.rfind('.')); }

/// The functions of one NIC share its place on the bus.
void join_functions(Repairs& repairs) {
  Topology& topology = repairs.topology;
  const std::vector<int> parents = repairs.topology.parents();
  std::map<std::tuple<int, int, std::string_view>, int> first;
  std::vector<int> whole(topology.sites.size());
  std::vector<bool> dropped(topology.sites.size());
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<int>(i);
  for (const int nic : topology.sites_of(SiteKind::nic)) {
    const Site& site = topology.site(nic);
    if (site.fact("busid").empty()) continue;
    const auto index = static_cast<std::size_t>(nic);
    const int one =
        first.try_emplace({site.machine, parents[index], device_of(site.fact("busid"))}, nic)
            .first->second;
    if (one == nic) continue;
    whole[index] = one;
    dropped[index] = true;
    repairs.tell(Severity::note, nic, "is part of " + repairs.words_for(one) + ": one NIC");
  }
  for (Link& link : topology.links)
    if (link.kind == LinkKind::port) {
      link.from = whole[static_cast<std::size_t>(link.from)];
      link.to = whole[static_cast<std::size_t>(link.to)];
    }
  repairs.remove(dropped, {});
}

/// Names with numbers in them by their values: "mlx5_2" before "mlx5_10".
std::string sortable(std::string_view name) {
  std::string sortable;
  while (!name.empty()) {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits > 0 && digits < 10) sortable.append(10 - digits, '0');
    const std::size_t length = std::max(digits, std::size_t{1});
    sortable += name.substr(0, length);
    name.remove_prefix(length);
  }
  return sortable;
}

/// Ports without a number get those that no other of their machine has, in the order of their
/// names: as NCCL counts what it finds.
void number_ports(Repairs& repairs) {
  std::map<int, std::set<long>> taken;  // by machine
  std::vector<std::pair<std::string, int>> unnumbered;
  for (const int port : repairs.topology.sites_of(SiteKind::port)) {
    const Site& site = repairs.site(port);
    if (const auto number = number_of(site, "dev"))
      taken[site.machine].insert(*number);
    else
      unnumbered.emplace_back(sortable(site.fact("name")), port);
  }
  std::stable_sort(unnumbered.begin(), unnumbered.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::map<int, long> next;
  for (const auto& [name, port] : unnumbered) {
    Site& site = repairs.site(port);
    long& number = next[site.machine];
    while (taken[site.machine].contains(number)) ++number;
    site.facts["dev"] = std::to_string(number++);
  }
}

double rate_of(const Topology& topology, const Link& link) {
  const Site &from = topology.site(link.from), &to = topology.site(link.to);
  const Site& gpu = from.kind == SiteKind::gpu ? from : to;
  const bool half = !gpu.fact("mlopart").empty() && gpu.fact("mlopart") != "-1";
  switch (link.kind) {
    case LinkKind::nvlink:
      return nvlink_rate(gpu) * link.count / (half ? 2 : 1);
    case LinkKind::xgmi:
      return xgmi_rate(gpu) * link.count;
    case LinkKind::c2c: {
      const Site& device = from.kind == SiteKind::cpu ? to : from;
      return static_cast<double>(number_of(device, "c2c_bw").value_or(0)) * 1e6 * link.count;
    }
    case LinkKind::pci:
      return usual_pci_rate;
    case LinkKind::socket:
      return std::min(socket_rate(from), socket_rate(to));
    case LinkKind::inside:
      return half ? halves_rate : inside_rate;
    case LinkKind::port:
    case LinkKind::network: {
      const Site& port = from.kind == SiteKind::port ? from : to;
      return static_cast<double>(number_of(port, "speed").value_or(usual_port_speed)) * 1e6 / 8;
    }
  }
  return 0;
}

}  // namespace

void repair_ports(Repairs& repairs) {
  repair_speeds(repairs);
  join_listed_twice(repairs);
  join_functions(repairs);
  number_ports(repairs);
}

void join_cpus(Repairs& repairs) {
  Topology& topology = repairs.topology;
  const bool joined = std::any_of(topology.links.begin(), topology.links.end(),
                                  [](const Link& link) { return link.kind == LinkKind::socket; });
  if (joined) return;
  std::map<int, std::vector<int>> by_machine;
  std::set<int> told;
  for (const int cpu : topology.sites_of(SiteKind::cpu)) {
    std::vector<int>& beside = by_machine[topology.site(cpu).machine];
    if (beside.size() == most_joined_cpus) {
      if (told.insert(topology.site(cpu).machine).second)
        repairs.tell(
            Severity::warning, cpu,
            fmt::format("it and those after it have no links to other CPUs: more than {} in "
                        "a machine are not joined",
                        most_joined_cpus));
      continue;
    }
    for (const int other : beside) topology.connect(other, cpu, {.kind = LinkKind::socket});
    beside.push_back(cpu);
  }
}

void fill_rates(Repairs& repairs) {
  for (Link& link : repairs.topology.links) {
    if (link.bytes_per_second == 0) link.bytes_per_second = rate_of(repairs.topology, link);
    if (link.latency_seconds == 0) link.latency_seconds = usual_latency(link.kind);
  }
}

}  // namespace khoro
