// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/read.h"

#include <fmt/format.h>

#include "topology/formats/findings.h"
#include "topology/formats/hwloc_xml.h"
#include "topology/formats/nccl_xml.h"
#include "topology/formats/text.h"
#include "topology/formats/xml_outline.h"

namespace khoro {
namespace {

Reading refused(std::string message) {
  Findings findings;
  findings.error({1, 1}, "", std::move(message));
  return {std::nullopt, findings.take()};
}

}  // namespace

Reading read_topology(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return refused("the text is empty");
  if (text[first] != '<') return parse_topology(text);
  const std::string_view root = root_name(text);
  if (root == "topology" || root == "root") return read_hwloc_xml(text);
  if (root == "graphs")
    return refused(
        "this is the result of a search for rings and trees (<graphs>), not a "
        "topology: give the file with <system>");
  if (root != "system" && !root.empty())
    return refused(
        fmt::format("XML of an unknown kind, <{}>: a topology begins with <system> "
                    "(NCCL) or <topology> (hwloc)",
                    shown(root)));
  return read_nccl_xml(text);  // which says what is wrong with a text that has no root
}

}  // namespace khoro
