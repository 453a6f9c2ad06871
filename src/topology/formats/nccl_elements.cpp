// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/nccl_elements.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/formats/attributes.h"

namespace khoro::nccl {
namespace {

using pugi::xml_node;

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

/// A GPU known by a class alone is one that a template promises.
bool is_gpu_class(std::string_view text) { return begins(text, "0x03") || begins(text, "0x12"); }

}  // namespace

int children(xml_node element, std::string_view name) {
  int count = 0;
  for (const xml_node child : element.children()) count += is(child, name);
  return count;
}

SiteKind kind_of(xml_node element, const Facts& facts) {
  const auto found = facts.find("class");
  const std::string_view text = found == facts.end() ? "" : std::string_view(found->second);
  if (const int gpus = children(element, "gpu"); gpus > 0)
    return gpus == 1 ? SiteKind::gpu : SiteKind::bridge;
  // A NIC is where the text says so, whatever its class.
  const bool has_nic = children(element, "nic") > 0;
  if (begins(text, "0x02") || (has_nic && children(element, "pci") == 0)) return SiteKind::nic;
  return !has_nic && is_gpu_class(text) ? SiteKind::gpu : SiteKind::bridge;
}

std::optional<std::string> bus_id_in(const XmlText& xml, xml_node element, const std::string& place,
                                     Findings& findings) {
  const pugi::xml_attribute attribute = element.attribute("busid");
  if (!attribute) {
    findings.error(xml.of(element), place,
                   "no busid: give the bus id of the function, as \"0000:3b:00.0\"");
    return std::nullopt;
  }
  auto id = bus_id_of(attribute.value());
  if (!id)
    findings.error(xml.of(element, "busid"), place,
                   fmt::format("busid \"{}\": must be domain, bus, device and function in "
                               "hexadecimal, as \"0000:3b:00.0\"",
                               shown(attribute.value())));
  else if (*id != attribute.value())
    findings.note(xml.of(element, "busid"), place, fmt::format("busid read as \"{}\"", *id));
  return id;
}

void name_strangers(const XmlText& xml, xml_node element, const std::string& place,
                    std::span<const std::string_view> known, Findings& findings) {
  for (const xml_node child : element.children()) {
    if (child.type() != pugi::node_element)
      findings.note(xml.of(child), place,
                    fmt::format("text \"{}\": ignored", shown(child.value())));
    else if (std::find(known.begin(), known.end(), child.name()) == known.end())
      findings.note(
          xml.of(child), place,
          fmt::format("an element <{}> inside <{}>: ignored", shown(child.name()), element.name()));
  }
}

}  // namespace khoro::nccl
