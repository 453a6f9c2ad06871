// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "drawing.h"
#include "topo.h"
#include "topology/formats/nccl_xml.h"
#include "topology/formats/text.h"
#include "topology/search.h"

namespace khoro::tool {
namespace {

std::string dot(const Topology& topology) {
  static constexpr std::array<std::string_view, 7> shapes = {"box", "diamond", "box3d", "component",
                                                             "cds", "hexagon", "egg"};
  std::string text = "graph machine {\n  node [fontname=\"sans-serif\"];\n";
  for (const Site& site : topology.sites)
    text +=
        fmt::format("  {} [shape={}];\n", site.name, shapes[static_cast<std::size_t>(site.kind)]);
  const std::vector<int> back = links_back(topology);
  for (std::size_t i = 0; i < back.size(); ++i) {
    const Link& link = topology.links[i];
    if (!is_drawn(topology, back, i)) continue;
    text += fmt::format("  {} -- {} [label=\"{}\", penwidth={:.1f}{}];\n",
                        topology.site(link.from).name, topology.site(link.to).name,
                        gigabytes(link.bytes_per_second), 1 + link.bytes_per_second / 50e9,
                        back[i] < 0 ? ", dir=forward" : "");
  }
  return text + "}\n";
}

/// The channels of an answer, with all links that each takes.
std::vector<DrawnChannel> drawn(const Answers& answers) {
  std::vector<DrawnChannel> drawn;
  for (const Channel& channel : answers.whole.channels) {
    DrawnChannel one{
        fmt::format("{} {}", name(channel.kind), drawn.size()), channel.bytes_per_second, {}};
    for (const Hop& hop : channel.hops)
      one.links.insert(one.links.end(), hop.route.begin(), hop.route.end());
    drawn.push_back(std::move(one));
  }
  return drawn;
}

struct Options {
  std::string file;
  std::vector<int> gpus;
  std::string format = "khoro";
};

std::string html(const Topology& topology, const Options& options) {
  const std::vector<int> gpus = gpus_numbered(topology, options.gpus);
  const Answers answers = search_channels(topology, gpus);
  const std::string machine = options.file.empty()
                                  ? "this machine"
                                  : options.file.substr(options.file.find_last_of('/') + 1);
  return html_of(topology, drawn(answers),
                 fmt::format("{}: {} GB/s of {}", machine, gigabytes(answers.whole.bus),
                             gigabytes(answers.whole.bound.bus)));
}

struct ExportFormat {
  std::string_view name;
  std::string (*write)(const Topology&, const Options&);
};

constexpr std::array<ExportFormat, 6> formats = {
    {{"khoro", [](const Topology& topology, const Options&) { return print(topology); }},
     {"nccl-xml",
      [](const Topology& topology, const Options&) { return write_nccl_xml(topology); }},
     {"json", [](const Topology& topology, const Options&) { return machine_json(topology); }},
     {"dot", [](const Topology& topology, const Options&) { return dot(topology); }},
     {"svg", [](const Topology& topology, const Options&) { return svg_of(topology); }},
     {"html", html}}};

void export_machine(const Options& options) {
  if (!options.gpus.empty() && options.format != "html")
    throw Error(Code::invalid_argument,
                "--gpus chooses whose channels are shown, and those are in --format html alone");
  const auto format = std::find_if(formats.begin(), formats.end(), [&](const ExportFormat& row) {
    return row.name == options.format;
  });
  fmt::print("{}", format->write(load_machine(options.file).topology, options));
}

}  // namespace

void add_topo_export(CLI::App& topo) {
  CLI::App* command = topo.add_subcommand("export", "Print a machine in another dialect");
  auto options = std::make_shared<Options>();  // lives as long as the command
  add_file(*command, options->file);
  add_gpus(*command, options->gpus);
  std::vector<std::string> names;
  for (const ExportFormat& format : formats) names.emplace_back(format.name);
  command
      ->add_option("--format", options->format,
                   fmt::format("one of {}; default: khoro", fmt::join(names, ", ")))
      ->type_name("FORMAT")
      ->check(CLI::IsMember(names));
  command->callback([options] { export_machine(*options); });
}

}  // namespace khoro::tool
