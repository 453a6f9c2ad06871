// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "topology/formats/findings.h"
#include "topology/formats/xml.h"
#include "topology/topology.h"

namespace khoro::nccl {

inline bool is(pugi::xml_node element, std::string_view name) { return element.name() == name; }

/// How many elements of that name are directly inside of this one.
int children(pugi::xml_node element, std::string_view name);

/// What a <pci> is, by what is inside of it, else by its class.
SiteKind kind_of(pugi::xml_node pci, const Facts& facts);

/// The canonical "busid" of a <pci>; nothing, and an error, if it has none.
std::optional<std::string> bus_id_in(const XmlText& xml, pugi::xml_node pci,
                                     const std::string& place, Findings& findings);

/// Notes what is directly inside of an element and is not of the known names.
void name_strangers(const XmlText& xml, pugi::xml_node element, const std::string& place,
                    std::span<const std::string_view> known, Findings& findings);

}  // namespace khoro::nccl
