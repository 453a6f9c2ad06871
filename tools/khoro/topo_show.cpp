// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "table.h"
#include "topo.h"
#include "topology/index.h"
#include "topology/leaving.h"
#include "topology/repair/repairs.h"

namespace khoro::tool {
namespace {

nlohmann::ordered_json json_of(const Topology& topology) {
  nlohmann::ordered_json all = {{"version", 1},
                                {"sites", nlohmann::ordered_json::array()},
                                {"links", nlohmann::ordered_json::array()}};
  for (const Site& site : topology.sites)
    all["sites"].push_back({{"name", site.name},
                            {"kind", name(site.kind)},
                            {"machine", site.machine},
                            {"facts", site.facts}});
  for (const Link& link : topology.links)
    all["links"].push_back({{"from", topology.site(link.from).name},
                            {"to", topology.site(link.to).name},
                            {"kind", name(link.kind)},
                            {"count", link.count},
                            {"bytes_per_second", link.bytes_per_second},
                            {"latency_seconds", link.latency_seconds}});
  return all;
}

/// Bytes of facts that are no UTF-8 are replaced.
std::string text_of(const nlohmann::ordered_json& all) {
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

/// What is worth knowing of a site beside its links.
std::string facts_of(const Site& site) {
  std::string text;
  const auto add = [&](std::string_view before, std::string_view key) {
    if (const std::string_view value = site.fact(key); !value.empty())
      text += fmt::format(" {}{}", before, printable(value));
  };
  switch (site.kind) {
    case SiteKind::cpu:
      add("numa ", "numaid"), add("", "vendor"), add("", "arch");
      break;
    case SiteKind::gpu:
      add("", "busid"), add("sm", site.fact("gcn").empty() ? "sm" : "-"), add("gfx ", "gcn");
      break;
    case SiteKind::port:
      add("", "name");
      break;
    default:
      add("", "busid");
  }
  return text;
}

class Tree {
 public:
  explicit Tree(const Normalised& machine)
      : topology_(machine.topology),
        several_machines_(has_several_machines(topology_)),
        leaving_(links_leaving(topology_)),
        parents_(topology_.parents()),
        children_(parents_.size()),
        said_(machine.diagnostics.size()),
        diagnostics_(machine.diagnostics) {
    for (std::size_t i = 0; i < parents_.size(); ++i)
      if (parents_[i] >= 0) children_[at(parents_[i])].push_back(static_cast<int>(i));
    for (const Site& site : topology_.sites) ++counts_[site.machine][site.kind];
    for (std::size_t i = 0; i < diagnostics_.size(); ++i) places_.emplace(diagnostics_[i].place, i);
  }

  std::string text() {
    int machine = -1;
    for (const int cpu : topology_.sites_of(SiteKind::cpu)) {
      if (const int its = topology_.site(cpu).machine; its != machine) heading(machine = its);
      line(cpu, "");
      below(cpu, "");
    }
    unattached();
    fabrics();
    rest();
    return std::move(text_);
  }

 private:
  void heading(int machine);
  void line(int site, const std::string& indent);
  void below(int site, const std::string& indent);
  void unattached();
  void fabrics();
  void rest();
  std::string links_of(int site) const;
  std::string up(int site) const;
  void say(int site, const std::string& indent);

  const Link& link(int index) const { return topology_.links[at(index)]; }

  const Topology& topology_;
  bool several_machines_;
  std::map<int, std::map<SiteKind, int>> counts_;  // of sites, by machine
  std::vector<std::vector<int>> leaving_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
  std::vector<bool> said_;
  const std::vector<Diagnostic>& diagnostics_;
  std::multimap<std::string_view, std::size_t> places_;  // of the diagnostics
  std::string text_;
};

void Tree::heading(int machine) {
  std::map<SiteKind, int>& count = counts_[machine];
  std::vector<std::string> parts;
  for (const SiteKind kind : {SiteKind::cpu, SiteKind::gpu, SiteKind::nic, SiteKind::port})
    if (count[kind] > 0)
      parts.push_back(fmt::format("{} {}{}", count[kind], name(kind), count[kind] == 1 ? "" : "s"));
  text_ += fmt::format("machine {}: {}; GB/s each way\n", machine, fmt::join(parts, ", "));
}

/// The rate of the link to what the site hangs off.
std::string Tree::up(int site) const {
  for (const int index : leaving_[at(site)])
    if (const Link& up = link(index); up.to == parents_[at(site)])
      return up.kind == LinkKind::inside ? "" : fmt::format("  {}", gigabytes(up.bytes_per_second));
  return "";
}

/// Its links that are no part of the tree: "nvlink gpu1 20, gpu2 40".
std::string Tree::links_of(int site) const {
  std::map<LinkKind, std::vector<std::string>> by_kind;
  for (const int index : leaving_[at(site)]) {
    const auto& [from, to, kind, count, rate, latency] = link(index);
    const bool in_tree =
        kind == LinkKind::pci || kind == LinkKind::inside || kind == LinkKind::port;
    const bool from_cpu = topology_.site(site).kind == SiteKind::cpu && kind != LinkKind::socket;
    if (in_tree || from_cpu) continue;
    by_kind[kind].push_back(fmt::format("{} {}", topology_.site(to).name, gigabytes(rate)));
  }
  std::string text;
  for (const auto& [kind, links] : by_kind)
    text += fmt::format("  {} {}", name(kind), fmt::join(links, ", "));
  return text;
}

void Tree::say(int site, const std::string& indent) {
  const auto [first, last] =
      places_.equal_range(words_for(topology_.site(site), several_machines_));
  for (auto place = first; place != last; ++place) {
    const std::size_t i = place->second;
    if (said_[i]) continue;
    said_[i] = true;
    text_ += fmt::format("{}  ! {}\n", indent, printable(diagnostics_[i].message));
  }
}

void Tree::line(int index, const std::string& indent) {
  const Site& site = topology_.site(index);
  text_ +=
      fmt::format("{}{}{}{}{}\n", indent, site.name, facts_of(site), up(index), links_of(index));
  say(index, indent);
}

void Tree::below(int site, const std::string& indent) {
  for (const int child : children_[at(site)]) {
    line(child, indent + "  ");
    below(child, indent + "  ");
  }
}

/// What hangs off no CPU, and what hangs off that.
void Tree::unattached() {
  for (std::size_t i = 0; i < parents_.size(); ++i) {
    const SiteKind kind = topology_.sites[i].kind;
    if (parents_[i] >= 0 || kind == SiteKind::cpu || kind == SiteKind::fabric) continue;
    line(static_cast<int>(i), "");
    for (const int index : leaving_[i])
      if (const Link& along = link(index); along.kind == LinkKind::pci)
        text_ += fmt::format("  pci {} {}\n", topology_.site(along.to).name,
                             gigabytes(along.bytes_per_second));
  }
}

void Tree::fabrics() {
  for (const int fabric : topology_.sites_of(SiteKind::fabric)) {
    text_ +=
        fmt::format("{} joins {} GPUs\n", topology_.site(fabric).name, leaving_[at(fabric)].size());
    say(fabric, "");
  }
}

void Tree::rest() {
  for (std::size_t i = 0; i < diagnostics_.size(); ++i)
    if (!said_[i]) text_ += fmt::format("! {}\n", line_of(diagnostics_[i]));
}

void print_json(const Normalised& machine) {
  nlohmann::ordered_json all = json_of(machine.topology);
  all["diagnostics"] = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : machine.diagnostics)
    all["diagnostics"].push_back(line_of(diagnostic));
  fmt::print("{}", text_of(all));
}

struct Options {
  std::string file;
  Format format = Format::text;
};

}  // namespace

std::string machine_json(const Topology& topology) { return text_of(json_of(topology)); }

void add_topo_show(CLI::App& topo) {
  CLI::App* command = topo.add_subcommand("show", "Print a machine as a tree, with its links");
  auto options = std::make_shared<Options>();  // lives as long as the command
  add_file(*command, options->file);
  add_format(*command, options->format);
  command->callback([options] {
    const Normalised machine = load_machine(options->file);
    if (options->format == Format::json) return print_json(machine);
    fmt::print("{}", Tree(machine).text());
  });
}

}  // namespace khoro::tool
