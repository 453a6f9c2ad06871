// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/xml_writer.h"

#include <fmt/format.h>

#include <algorithm>

namespace khoro {
namespace {

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const bool special = c == '&' || c == '<' || c == '>' || c == '"';
    const auto byte = static_cast<unsigned char>(c);
    const bool blank = c == '\t' || c == '\n' || c == '\r';
    if (special || blank)
      text += fmt::format("&#{};", byte);
    else if (byte >= 0x20)  // others have no form in XML
      text += c;
  }
  return text;
}

}  // namespace

void XmlWriter::begin(std::string_view name, const Attributes& attributes) {
  if (is_bare_) text_ += ">\n";
  text_ += fmt::format("{}<{}", std::string(2 * open_.size(), ' '), name);
  for (const auto& [key, value] : attributes)
    if (is_name(key)) text_ += fmt::format(" {}=\"{}\"", key, escaped(value));
  open_.emplace_back(name);
  is_bare_ = true;
}

void XmlWriter::end() {
  const std::string name = std::move(open_.back());
  open_.pop_back();
  text_ += is_bare_ ? std::string("/>\n")
                    : fmt::format("{}</{}>\n", std::string(2 * open_.size(), ' '), name);
  is_bare_ = false;
}

}  // namespace khoro
