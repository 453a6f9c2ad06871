// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/xml_outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "topology/formats/findings.h"

namespace khoro {
namespace {

constexpr std::size_t most_elements = std::size_t{1} << 17;
constexpr std::size_t most_attributes = std::size_t{1} << 19;
constexpr std::size_t most_depth = 128;
constexpr std::size_t most_tag_bytes = std::size_t{1} << 16;
constexpr std::size_t nowhere = std::string_view::npos;

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class Outline {
 public:
  explicit Outline(std::string_view text) : text_(text) {}

  XmlFault run() {
    if (std::count(text_.begin(), text_.end(), '=') > std::ptrdiff_t{most_attributes})
      return {0, fmt::format("more than {} attributes", most_attributes)};
    while (fault_.message.empty() && next_tag()) {
    }
    if (fault_.message.empty() && !open_.empty())
      fail(text_.size(),
           fmt::format("the text ends before </{}>, the end of the element of line {}",
                       shown(open_.back().name), line(open_.back().offset)));
    if (fault_.message.empty() && elements_ == 0)
      fail(0, text_.find_first_not_of(" \t\r\n") == nowhere ? "the text is empty"
                                                            : "the text has no XML element");
    return fault_;
  }

  std::string_view root() {
    while (fault_.message.empty() && elements_ == 0 && next_tag()) {
    }
    return root_;
  }

 private:
  struct Open {
    std::string_view name;
    std::size_t offset;
  };

  bool starts(std::string_view with) const { return text_.substr(at_, with.size()) == with; }
  std::size_t line(std::size_t offset) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(offset);
    return 1 + static_cast<std::size_t>(std::count(text_.begin(), end, '\n'));
  }
  void fail(std::size_t offset, std::string message) { fault_ = {offset, std::move(message)}; }

  bool next_tag() {
    at_ = text_.find('<', at_);
    if (at_ == nowhere) return false;
    if (starts("<!--")) return skip("-->", "a comment");
    if (starts("<![CDATA[")) return skip("]]>", "a CDATA section");
    if (starts("<?")) return skip("?>", "a processing instruction");
    if (starts("<!")) return skip_doctype();
    return starts("</") ? closing_tag() : opening_tag();
  }

  bool skip(std::string_view to, std::string_view what) {
    const std::size_t end = text_.find(to, at_ + 2);
    if (end == nowhere)
      fail(at_, fmt::format("the text ends inside {} that begins here", what));
    else
      at_ = end + to.size();
    return true;
  }

  bool skip_doctype() {
    int depth = 0;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '"' || c == '\'') {
        i = text_.find(c, i + 1);
        if (i == nowhere) break;
      }
      depth += c == '<' ? 1 : c == '>' ? -1 : 0;
      if (depth > 0) continue;
      at_ = i + 1;
      return true;
    }
    fail(at_, "the text ends inside a document type that begins here");
    return true;
  }

  std::string_view name_at(std::size_t offset) const {
    std::size_t end = offset;
    while (end < text_.size() && !is_blank(text_[end]) && text_[end] != '>' && text_[end] != '/')
      ++end;
    return text_.substr(offset, end - offset);
  }

  bool closing_tag() {
    const std::string_view name = name_at(at_ + 2);
    const std::size_t end = text_.find('>', at_);
    if (end == nowhere)
      fail(at_, fmt::format("the text ends inside the tag </{}", shown(name)));
    else if (open_.empty())
      fail(at_, fmt::format("</{}> closes nothing", shown(name)));
    else if (open_.back().name != name)
      fail(at_, fmt::format("</{}> where </{}> is due, to close the element of line {}",
                            shown(name), shown(open_.back().name), line(open_.back().offset)));
    else
      open_.pop_back();
    at_ = end;
    return true;
  }

  bool opening_tag() {
    const Open element{name_at(at_ + 1), at_};
    if (elements_ == 0) root_ = element.name;
    if (elements_ > 0 && open_.empty())
      fail(at_, fmt::format("a second root element, <{}>: a text holds one", shown(element.name)));
    if (++elements_ > most_elements) fail(at_, fmt::format("more than {} elements", most_elements));
    if (open_.size() >= most_depth)
      fail(at_, fmt::format("elements nested more than {} deep", most_depth));
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '>') {
        if (text_[i - 1] != '/') open_.push_back(element);
        if (i - at_ > most_tag_bytes)
          fail(at_, fmt::format("a tag of more than {} bytes", most_tag_bytes));
        at_ = i + 1;
        return true;
      }
      if (c == '"' || c == '\'') {
        i = text_.find(c, i + 1);
        if (i == nowhere) break;
      }
    }
    fail(at_, fmt::format("the text ends inside the tag <{}", shown(element.name)));
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t elements_ = 0;
  std::string_view root_;
  std::vector<Open> open_;
  XmlFault fault_;
};

}  // namespace

XmlFault outline_fault(std::string_view text) { return Outline(text).run(); }

std::string_view root_name(std::string_view text) { return Outline(text).root(); }

bool declares_entities(std::string_view text) { return text.find("<!ENTITY") != nowhere; }

}  // namespace khoro
