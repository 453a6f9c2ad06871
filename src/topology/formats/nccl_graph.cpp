// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/nccl_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "topology/formats/attributes.h"
#include "topology/formats/nccl_elements.h"
#include "topology/formats/xml.h"
#include "topology/formats/xml_writer.h"

namespace khoro {
namespace {

using nccl::is;
using pugi::xml_node;

constexpr long long most = 1'000'000;

constexpr std::array<AttributeRule, 10> graph_rules = {{
    {"id", Form::integer, 0, most},
    {"pattern", Form::integer, 0, most},
    {"crossnic", Form::integer, 0, most},
    {"nchannels", Form::integer, 0, most},
    {"speedintra", Form::number, 0, most},
    {"speedinter", Form::number, 0, most},
    {"latencyinter", Form::number, 0, most},
    {"typeintra"},
    {"typeinter"},
    {"samechannels", Form::integer, 0, 1},
}};
constexpr std::array<AttributeRule, 2> gpu_rules = {
    {{"dev", Form::hexadecimal}, {"rank", Form::integer, -1, most}}};
constexpr std::array<AttributeRule, 1> net_rules = {{{"dev", Form::hexadecimal}}};

/// The best of which is what is not said.
constexpr std::array<std::string_view, 12> path_kinds = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                         "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

int integer(const Facts& facts, std::string_view key, int otherwise = 0) {
  const auto fact = facts.find(key);
  if (fact == facts.end()) return otherwise;
  return static_cast<int>(integer_of(fact->second).value_or(otherwise));
}

double number(const Facts& facts, std::string_view key) {
  const auto fact = facts.find(key);
  double value = 0;
  if (fact != facts.end())
    std::from_chars(fact->second.data(), fact->second.data() + fact->second.size(), value);
  return value;
}

class GraphReader {
 public:
  explicit GraphReader(std::string_view text) : xml_(text, findings_) {}

  GraphReading run() {
    if (!findings_.failed()) read_all(xml_.root());
    GraphReading reading;
    if (!findings_.failed()) reading.graphs = std::move(graphs_);
    reading.diagnostics = findings_.take();
    return reading;
  }

 private:
  static constexpr std::array<std::string_view, 1> in_graphs_ = {"graph"};
  static constexpr std::array<std::string_view, 1> in_graph_ = {"channel"};
  static constexpr std::array<std::string_view, 2> in_channel_ = {"net", "gpu"};

  void read_all(xml_node root) {
    if (!is(root, "graphs")) {
      findings_.error(
          xml_.of(root), "",
          fmt::format("a root element <{}>: search results have <graphs>", shown(root.name())));
      return;
    }
    if (std::string_view(root.attribute("version").value()) != "1")
      findings_.error(xml_.of(root, "version"), "graphs", "version 1 is known");
    nccl::name_strangers(xml_, root, "graphs", in_graphs_, findings_);
    for (const xml_node graph : root.children("graph")) read_graph(graph);
  }

  void read_graph(xml_node element) {
    const std::string place = fmt::format("graph {}", shown(element.attribute("id").value()));
    const Facts facts = read_attributes(xml_, element, graph_rules, place, findings_);
    for (const std::string_view needed : {"id", "pattern"})
      if (facts.find(needed) == facts.end())
        findings_.error(xml_.of(element), place, fmt::format("<graph> without {}", needed));
    NcclGraph graph;
    graph.id = integer(facts, "id");
    graph.pattern = integer(facts, "pattern");
    graph.cross_nic = integer(facts, "crossnic");
    graph.speed_intra = number(facts, "speedintra");
    graph.speed_inter = number(facts, "speedinter");
    graph.latency_inter = number(facts, "latencyinter");
    graph.type_intra = path_kind(element, facts, "typeintra", place);
    graph.type_inter = path_kind(element, facts, "typeinter", place);
    graph.same_channels = integer(facts, "samechannels") != 0;
    nccl::name_strangers(xml_, element, place, in_graph_, findings_);
    for (const xml_node channel : element.children("channel"))
      graph.channels.push_back(read_channel(channel, place));
    const auto count = static_cast<int>(graph.channels.size());
    if (integer(facts, "nchannels", count) != count)
      findings_.warn(
          xml_.of(element, "nchannels"), place,
          fmt::format("nchannels {}, but there are {}", integer(facts, "nchannels"), count));
    graphs_.push_back(std::move(graph));
  }

  std::string path_kind(xml_node element, const Facts& facts, const char* key,
                        const std::string& place) {
    const auto fact = facts.find(key);
    if (fact == facts.end()) return std::string(path_kinds.front());
    if (std::find(path_kinds.begin(), path_kinds.end(), fact->second) != path_kinds.end())
      return fact->second;
    findings_.warn(xml_.of(element, key), place,
                   fmt::format("{} \"{}\": no kind of path, taken for {}", key, shown(fact->second),
                               path_kinds.front()));
    return std::string(path_kinds.front());
  }

  NcclChannel read_channel(xml_node element, const std::string& place) {
    NcclChannel channel;
    nccl::name_strangers(xml_, element, place, in_channel_, findings_);
    for (const xml_node child : element.children()) {
      if (is(child, "gpu")) {
        const Facts facts = read_attributes(xml_, child, gpu_rules, place, findings_);
        channel.gpus.push_back({dev(child, facts, place), integer(facts, "rank", -1)});
      } else if (is(child, "net")) {
        const Facts facts = read_attributes(xml_, child, net_rules, place, findings_);
        auto& net = channel.gpus.empty() ? channel.net_in : channel.net_out;
        if (net) findings_.warn(xml_.of(child), place, "a second net on one side: the last counts");
        net = dev(child, facts, place);
      }
    }
    return channel;
  }

  std::uint64_t dev(xml_node element, const Facts& facts, const std::string& place) {
    const auto fact = facts.find("dev");
    if (fact == facts.end()) {
      if (!element.attribute("dev"))
        findings_.error(xml_.of(element), place, fmt::format("<{}> without dev", element.name()));
      return 0;
    }
    std::uint64_t value = 0;
    std::from_chars(fact->second.data() + 2, fact->second.data() + fact->second.size(), value, 16);
    if (value > 9 && fact->second != element.attribute("dev").value())
      findings_.note(xml_.of(element, "dev"), place,
                     fmt::format("dev \"{}\" without 0x: hexadecimal all the same, {}",
                                 shown(element.attribute("dev").value()), value));
    return value;
  }

  Findings findings_;
  XmlText xml_;
  std::vector<NcclGraph> graphs_;
};

std::string dev_text(std::uint64_t dev) { return dev == 0 ? "0" : fmt::format("{:#x}", dev); }

void write_channel(const NcclChannel& channel, XmlWriter& xml) {
  xml.begin("channel", {});
  if (channel.net_in) xml.element("net", {{"dev", dev_text(*channel.net_in)}});
  for (const NcclChannel::Gpu& gpu : channel.gpus) {
    Attributes attributes = {{"dev", dev_text(gpu.dev)}};
    if (gpu.rank >= 0) attributes.emplace_back("rank", std::to_string(gpu.rank));
    xml.element("gpu", attributes);
  }
  if (channel.net_out) xml.element("net", {{"dev", dev_text(*channel.net_out)}});
  xml.end();
}

}  // namespace

GraphReading read_nccl_graphs(std::string_view text) { return GraphReader(text).run(); }

std::string write_nccl_graphs(const std::vector<NcclGraph>& graphs) {
  XmlWriter xml;
  xml.begin("graphs", {{"version", "1"}});
  for (const NcclGraph& graph : graphs) {
    xml.begin("graph", {{"id", std::to_string(graph.id)},
                        {"pattern", std::to_string(graph.pattern)},
                        {"crossnic", std::to_string(graph.cross_nic)},
                        {"nchannels", std::to_string(graph.channels.size())},
                        {"speedintra", fmt::format("{}", graph.speed_intra)},
                        {"speedinter", fmt::format("{}", graph.speed_inter)},
                        {"latencyinter", fmt::format("{}", graph.latency_inter)},
                        {"typeintra", graph.type_intra},
                        {"typeinter", graph.type_inter},
                        {"samechannels", graph.same_channels ? "1" : "0"}});
    for (const NcclChannel& channel : graph.channels) write_channel(channel, xml);
    xml.end();
  }
  xml.end();
  return xml.take();
}

}  // namespace khoro
