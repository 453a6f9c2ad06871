// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "topology/formats/findings.h"
#include "topology/formats/xml.h"
#include "topology/topology.h"

namespace khoro {

/// How the value of an attribute is written.
enum class Form : std::uint8_t { text, integer, number, hexadecimal, cpu_set };

/// An attribute that is known, and what is made of one whose value makes no sense.
struct AttributeRule {
  std::string_view name;
  Form form = Form::text;
  long long least = 0;
  long long most = 0;
  /// Stands in, with a warning, for a value that is not of the form; nullptr: that is an error.
  /// Empty: the attribute is left out.
  const char* otherwise = nullptr;
};

/// The attributes of an element as facts: known ones in canonical spelling, unknown ones as they
/// are, with a note. `place` names the element in diagnostics.
Facts read_attributes(const XmlText& xml, pugi::xml_node element,
                      std::span<const AttributeRule> rules, const std::string& place,
                      Findings& findings);

/// Decimal, or hexadecimal with 0x; nothing if the text is anything else.
std::optional<long long> integer_of(std::string_view text);
/// "0000:3b:00.0": lower case, at least four digits of domain ("3b:00.0" has domain 0). Nothing if
/// the text is no bus id.
std::optional<std::string> bus_id_of(std::string_view text);

}  // namespace khoro
