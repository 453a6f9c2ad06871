// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "table.h"
#include "topo.h"
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
        parents_(topology_.parents()),
        said_(machine.diagnostics.size()),
        diagnostics_(machine.diagnostics) {}

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

  const Topology& topology_;
  std::vector<int> parents_;
  std::vector<bool> said_;
  const std::vector<Diagnostic>& diagnostics_;
  std::string text_;
};

void Tree::heading(int machine) {
  std::map<SiteKind, int> count;
  for (const Site& site : topology_.sites)
    if (site.machine == machine) ++count[site.kind];
  std::vector<std::string> parts;
  for (const SiteKind kind : {SiteKind::cpu, SiteKind::gpu, SiteKind::nic, SiteKind::port})
    if (count[kind] > 0)
      parts.push_back(fmt::format("{} {}{}", count[kind], name(kind), count[kind] == 1 ? "" : "s"));
  text_ += fmt::format("machine {}: {}; GB/s each way\n", machine, fmt::join(parts, ", "));
}

/// The rate of the link to what the site hangs off.
std::string Tree::up(int site) const {
  for (const Link& link : topology_.links)
    if (link.from == site && link.to == parents_[static_cast<std::size_t>(site)])
      return link.kind == LinkKind::inside ? ""
                                           : fmt::format("  {}", gigabytes(link.bytes_per_second));
  return "";
}

/// Its links that are no part of the tree: "nvlink gpu1 20, gpu2 40".
std::string Tree::links_of(int site) const {
  std::map<LinkKind, std::vector<std::string>> by_kind;
  for (const Link& link : topology_.links) {
    const bool in_tree =
        link.kind == LinkKind::pci || link.kind == LinkKind::inside || link.kind == LinkKind::port;
    const bool from_cpu =
        topology_.site(site).kind == SiteKind::cpu && link.kind != LinkKind::socket;
    if (link.from != site || in_tree || from_cpu) continue;
    by_kind[link.kind].push_back(
        fmt::format("{} {}", topology_.site(link.to).name, gigabytes(link.bytes_per_second)));
  }
  std::string text;
  for (const auto& [kind, links] : by_kind)
    text += fmt::format("  {} {}", name(kind), fmt::join(links, ", "));
  return text;
}

void Tree::say(int site, const std::string& indent) {
  const std::string words = words_for(topology_, site);
  for (std::size_t i = 0; i < diagnostics_.size(); ++i) {
    if (said_[i] || diagnostics_[i].place != words) continue;
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
  for (std::size_t child = 0; child < parents_.size(); ++child)
    if (parents_[child] == site) {
      line(static_cast<int>(child), indent + "  ");
      below(static_cast<int>(child), indent + "  ");
    }
}

/// What hangs off no CPU, and what hangs off that.
void Tree::unattached() {
  for (std::size_t i = 0; i < parents_.size(); ++i) {
    const SiteKind kind = topology_.sites[i].kind;
    if (parents_[i] >= 0 || kind == SiteKind::cpu || kind == SiteKind::fabric) continue;
    line(static_cast<int>(i), "");
    for (const Link& link : topology_.links)
      if (link.from == static_cast<int>(i) && link.kind == LinkKind::pci)
        text_ += fmt::format("  pci {} {}\n", topology_.site(link.to).name,
                             gigabytes(link.bytes_per_second));
  }
}

void Tree::fabrics() {
  for (const int fabric : topology_.sites_of(SiteKind::fabric)) {
    const auto gpus = std::count_if(topology_.links.begin(), topology_.links.end(),
                                    [fabric](const Link& link) { return link.from == fabric; });
    text_ += fmt::format("{} joins {} GPUs\n", topology_.site(fabric).name, gpus);
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
