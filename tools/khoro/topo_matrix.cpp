// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "table.h"
#include "topo.h"
#include "topology/path.h"

namespace khoro::tool {
namespace {

struct Options {
  std::string file;
  bool rates = false;
  Format format = Format::text;
};

/// How many links a GPU puts into a direct path.
int links_into(const Topology& topology, const Path& path) {
  return topology.links[static_cast<std::size_t>(path.links.front())].count;
}

/// "NV4", "XG1", "SYS": nvidia-smi's words where it has one.
std::string words_of(const Topology& topology, const Path& path) {
  if (path.kind != PathKind::direct) return std::string(name(path.kind));
  const bool xgmi =
      topology.links[static_cast<std::size_t>(path.links.front())].kind == LinkKind::xgmi;
  return fmt::format("{}{}", xgmi ? "XG" : "NV", links_into(topology, path));
}

std::string cell(const Topology& topology, const Path& path, bool rates) {
  if (!rates || path.kind == PathKind::self || path.kind == PathKind::none)
    return words_of(topology, path);
  return gigabytes(path.bytes_per_second);
}

std::vector<int> devices(const Topology& topology) {
  std::vector<int> devices = topology.sites_of(SiteKind::gpu);
  const std::vector<int> nics = topology.sites_of(SiteKind::nic);
  devices.insert(devices.end(), nics.begin(), nics.end());
  return devices;
}

constexpr const char* legend =
    "\nX     the same\n"
    "NVn   n NVLinks, through NVSwitches where there are some; XGn: n xGMI links\n"
    "NVB   NVLink or xGMI through one other GPU\n"
    "C2C   a GPU and the CPU that it is coupled to; P2C: that, then PCIe\n"
    "PIX   at most one PCIe bridge; PXB: several, and no CPU\n"
    "PHB   the CPU of one NUMA node\n"
    "SYS   between CPUs of a machine; NET: between machines; DIS: nothing\n";

void print_text(const Topology& topology, bool rates) {
  const std::vector<int> all = devices(topology);
  std::vector<std::string> head = {""};
  for (const int site : all) head.push_back(topology.site(site).name);
  head.push_back("cpu");
  Table table(std::move(head));
  for (const int from : all) {
    std::vector<std::string> row = {topology.site(from).name};
    for (const int to : all) row.push_back(cell(topology, best_path(topology, from, to), rates));
    const int cpu = topology.cpu_of(from);
    row.push_back(cpu < 0 ? "?" : topology.site(cpu).name);
    table.add(std::move(row));
  }
  fmt::print("{}{}", table.text(), rates ? "\nGB/s one way, of the slowest link\n" : legend);
}

void print_json(const Topology& topology) {
  nlohmann::ordered_json all = {{"version", 1}, {"paths", nlohmann::ordered_json::array()}};
  for (const int from : devices(topology))
    for (const int to : devices(topology)) {
      if (from == to) continue;
      const Path path = best_path(topology, from, to);
      all["paths"].push_back({{"from", topology.site(from).name},
                              {"to", topology.site(to).name},
                              {"kind", words_of(topology, path)},
                              {"bytes_per_second", path.bytes_per_second},
                              {"latency_seconds", path.latency_seconds}});
    }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_topo_matrix(CLI::App& topo) {
  CLI::App* command =
      topo.add_subcommand("matrix", "Print how GPUs and NICs reach each other, as a matrix");
  auto options = std::make_shared<Options>();  // lives as long as the command
  add_file(*command, options->file);
  command->add_flag("--bw", options->rates, "print GB/s instead of words");
  add_format(*command, options->format);
  command->callback([options] {
    const Topology topology = load_machine(options->file).topology;
    options->format == Format::json ? print_json(topology) : print_text(topology, options->rates);
  });
}

}  // namespace khoro::tool
