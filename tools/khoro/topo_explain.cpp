// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>

#include "access.h"
#include "table.h"
#include "topo.h"
#include "topology/path.h"

namespace khoro::tool {
namespace {

struct Options {
  std::string from, to, file;
};

void print_path(const Topology& topology, const Path& path, std::string_view title) {
  fmt::print("{}: {}, {} GB/s, {:.2f} us\n", title, name(path.kind),
             gigabytes(path.bytes_per_second), path.latency_seconds * 1e6);
  Table hops({"  from", "to", "link", "GB/s", ""});
  for (const int index : path.links) {
    const Link& link = topology.links[static_cast<std::size_t>(index)];
    const bool slowest = link.bytes_per_second == path.bytes_per_second;
    hops.add({"  " + topology.site(link.from).name, topology.site(link.to).name,
              link.count > 1 ? fmt::format("{} x{}", name(link.kind), link.count)
                             : std::string(name(link.kind)),
              gigabytes(link.bytes_per_second), slowest ? "the slowest" : ""});
  }
  fmt::print("{}", hops.text());
}

void explain(const Options& options) {
  const Topology topology = load_machine(options.file).topology;
  const int from = site_named(topology, options.from), to = site_named(topology, options.to);
  const Path best = best_path(topology, from, to), host = host_path(topology, from, to);
  if (best.kind == PathKind::self) return fmt::print("{} is itself\n", options.from);
  if (best.kind == PathKind::none)
    return fmt::print("{} and {} do not reach each other\n", options.from, options.to);
  print_path(topology, best, "best path");
  if (const std::string access = access_between(topology, from, to); !access.empty())
    fmt::print("{}\n", access);
  if (best.links == host.links) return;
  if (host.kind == PathKind::none) return fmt::print("there is no path over PCIe and CPUs\n");
  fmt::print("\nits kind goes before that of the path over PCIe and CPUs\n");
  print_path(topology, host, "that one");
}

}  // namespace

void add_topo_explain(CLI::App& topo) {
  CLI::App* command = topo.add_subcommand("explain", "Print the path between two sites hop by hop");
  auto options = std::make_shared<Options>();  // lives as long as the command
  command->add_option("from", options->from, "a site, as `khoro topo show` names it")->required();
  command->add_option("to", options->to, "another")->required();
  add_file(*command, options->file);
  command->callback([options] { explain(*options); });
}

}  // namespace khoro::tool
