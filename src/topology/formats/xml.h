// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <pugixml.hpp>
#include <string_view>
#include <vector>

#include "topology/formats/findings.h"

namespace khoro {

/// An XML text, parsed within limits: 16 MiB, 131,072 elements, 128 levels. Nothing outside of the
/// text is ever read, and no entities but XML's own five and numbers are replaced. Borrows the
/// text.
class XmlText {
 public:
  /// What is wrong with it is said in `findings`.
  XmlText(std::string_view text, Findings& findings);

  /// Empty if the text could not be parsed.
  pugi::xml_node root() const { return root_; }
  Position of(pugi::xml_node element) const;
  /// Of an attribute's name; of its element if the element has no such attribute.
  Position of(pugi::xml_node element, std::string_view attribute) const;
  Position at(std::size_t offset) const;
  /// The first tag with anything but one blank between its attributes, which simple parsers refuse;
  /// line 0 if there is none.
  Position first_loose_tag() const;

 private:
  std::string_view text_;
  std::vector<std::size_t> line_begins_;
  pugi::xml_document document_;
  pugi::xml_node root_;
};

}  // namespace khoro
