// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "topology/formats/nccl_graph.h"
#include "topology/formats/nccl_xml.h"
#include "topology/formats/read.h"
#include "topology/formats/text.h"
#include "topology/normalise.h"

namespace khoro::test {

/// What is wrong with a topology whatever was read; "" if it is sound.
inline std::string flaw_of(const Topology& topology) {
  const auto count = static_cast<int>(topology.sites.size());
  const auto is_site = [count](int index) { return index >= 0 && index < count; };
  std::set<std::string_view> names;
  for (const Site& site : topology.sites)
    if (!names.insert(site.name).second) return "two sites of the name " + site.name;
  for (const Link& link : topology.links) {
    if (!is_site(link.from) || !is_site(link.to)) return "a link without an end";
    if (link.count < 0 || !(link.bytes_per_second >= 0) || !(link.latency_seconds >= 0))
      return "a link with a negative amount";
  }
  for (const int site : topology.place)
    if (!is_site(site)) return "a rank without a site";
  return "";
}

/// The diagnostics say whether the text could be used, and where what is wrong stands.
inline std::string flaw_of(const std::vector<Diagnostic>& diagnostics, bool readable) {
  bool failed = false;
  for (const Diagnostic& diagnostic : diagnostics) {
    failed |= diagnostic.severity == Severity::error;
    if (diagnostic.severity != Severity::note && (diagnostic.line < 1 || diagnostic.column < 1))
      return "a diagnostic without a position: " + diagnostic.message;
    if (diagnostic.message.empty()) return "a diagnostic that says nothing";
  }
  return failed == readable ? "errors in what could be read, or none in what could not" : "";
}

/// What is wrong with what normalise() makes of a topology; "" if it is sound.
inline std::string flaw_of(const Normalised& normalised) {
  const Topology& topology = normalised.topology;
  if (std::string flaw = flaw_of(topology); !flaw.empty()) return "normalised: " + flaw;
  for (const Link& link : topology.links)
    if (link.from == link.to) return "normalised: a link to itself";
  for (const Diagnostic& diagnostic : normalised.diagnostics)
    if (diagnostic.severity == Severity::error || diagnostic.message.empty())
      return "normalised: what can be used is told as an error, or nothing is told";
  return "";
}

/// Which law of readers, writers and repairs does not hold for a text, whatever the text; "" if all
/// hold.
inline std::string broken_law(std::string_view text) {
  const GraphReading graphs = read_nccl_graphs(text);
  if (std::string flaw = flaw_of(graphs.diagnostics, graphs.graphs.has_value()); !flaw.empty())
    return flaw;
  if (graphs.graphs && read_nccl_graphs(write_nccl_graphs(*graphs.graphs)).graphs != graphs.graphs)
    return "search results written and read differ";
  const Reading reading = read_topology(text);
  if (std::string flaw = flaw_of(reading.diagnostics, reading.topology.has_value()); !flaw.empty())
    return flaw;
  if (!reading.topology) return "";
  if (std::string flaw = flaw_of(*reading.topology); !flaw.empty()) return flaw;
  if (std::string flaw = flaw_of(normalise(*reading.topology)); !flaw.empty()) return flaw;
  const std::string printed = print(*reading.topology);
  if (parse_topology(printed).topology != reading.topology) return "printed and parsed differ";
  if (reading.topology->sites.empty()) return "";
  try {
    // What the format cannot say is lost on the first way through it, and nothing on the next.
    const Reading once = read_nccl_xml(write_nccl_xml(*reading.topology));
    // In the project's own text facts may be anything.
    if (!once.topology && parse_topology(text).topology) return "";
    if (!once.topology) return "written as NCCL's XML and not readable";
    if (read_nccl_xml(write_nccl_xml(*once.topology)).topology != once.topology)
      return "read, written and read differ";
  } catch (const Error&) {
    // Nested deeper than the format can say.
  }
  return "";
}

}  // namespace khoro::test
