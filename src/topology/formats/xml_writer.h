// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace khoro {

/// Attributes in the order in which they are written.
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Writes XML that simple parsers read too: attributes with one blank before each, no text between
/// elements, elements without contents closed at once.
class XmlWriter {
 public:
  /// Begins an element inside the current one. Attributes whose names XML does not know are left
  /// out.
  void begin(std::string_view name, const Attributes& attributes);
  void end();
  /// An element without contents.
  void element(std::string_view name, const Attributes& attributes) {
    begin(name, attributes);
    end();
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::vector<std::string> open_;
  bool is_bare_ = false;  // nothing is inside the current element so far
};

}  // namespace khoro
