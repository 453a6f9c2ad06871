// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/xml.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/formats/xml_outline.h"
#include "topology/reading.h"

namespace khoro {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool ends_name(char c) noexcept { return c == '=' || is_blank(c); }

}  // namespace

XmlText::XmlText(std::string_view text, Findings& findings) : text_(text) {
  if (text.size() > most_topology_bytes) {
    findings.error({1, 1}, "",
                   fmt::format("{} bytes: at most {} are read", text.size(), most_topology_bytes));
    return;
  }
  line_begins_.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') line_begins_.push_back(i + 1);
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    findings.error(at(zero), "",
                   "a zero byte: this is no text, or one of UTF-16; give it as UTF-8");
    return;
  }
  if (const XmlFault fault = outline_fault(text); !fault.message.empty()) {
    findings.error(at(fault.offset), "", fault.message);
    return;
  }
  const pugi::xml_parse_result result =
      document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    findings.error(at(static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0))), "",
                   fmt::format("this is no XML: {}", result.description()));
    return;
  }
  if (declares_entities(text))
    findings.warn({1, 1}, "", "the text declares entities: they are never replaced");
  root_ = document_.document_element();
}

Position XmlText::at(std::size_t offset) const {
  const auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
  const auto line = static_cast<std::size_t>(after - line_begins_.begin());
  return {static_cast<int>(line), static_cast<int>(offset - line_begins_[line - 1]) + 1};
}

Position XmlText::of(pugi::xml_node element) const {
  const std::ptrdiff_t offset = element.offset_debug();
  // It is that of the name.
  return offset < 1 ? Position{} : at(static_cast<std::size_t>(offset) - 1);
}

Position XmlText::of(pugi::xml_node element, std::string_view attribute) const {
  const std::ptrdiff_t begin = element.offset_debug();
  if (begin < 0) return {};
  char quote = 0;
  for (auto i = static_cast<std::size_t>(begin); i < text_.size(); ++i) {
    const char c = text_[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      break;
    } else if (ends_name(text_[i - 1]) && text_.substr(i, attribute.size()) == attribute) {
      const std::size_t end = i + attribute.size();
      if (end < text_.size() && ends_name(text_[end])) return at(i);
    }
  }
  return of(element);
}

Position XmlText::first_loose_tag() const {
  bool in_tag = false;
  char quote = 0;
  for (std::size_t i = 0; i + 1 < text_.size(); ++i) {
    const char c = text_[i];
    if (!in_tag && text_.substr(i, 4) == "<!--") {
      i = std::min(text_.find("-->", i), text_.size());
    } else if (!in_tag) {
      in_tag = c == '<' && text_[i + 1] != '?' && text_[i + 1] != '!';
    } else if (quote != 0) {
      quote = c == quote ? '\0' : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      in_tag = false;
    } else if (is_blank(c) && (c != ' ' || is_blank(text_[i + 1]))) {
      return at(i);
    }
  }
  return {};
}

}  // namespace khoro
