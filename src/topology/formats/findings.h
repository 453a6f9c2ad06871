// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace khoro {

/// Where in a text something stands, from 1; 0 when it is not known.
struct Position {
  int line = 0;
  int column = 0;
};

/// The diagnostics of one text. A text can be wrong in a million places: the first ones are kept,
/// and how many followed.
class Findings {
 public:
  void note(Position where, std::string place, std::string message);
  void warn(Position where, std::string place, std::string message);
  void error(Position where, std::string place, std::string message);

  /// Whether one more would be kept: if not, nobody need say where it would be.
  bool keeps(Severity severity) const noexcept;
  /// There was an error.
  bool failed() const noexcept { return failed_; }
  /// In the order of the text.
  std::vector<Diagnostic> take();

 private:
  void add(Severity severity, Position where, std::string place, std::string message);

  std::vector<Diagnostic> kept_;
  std::size_t dropped_ = 0;
  bool failed_ = false;
};

/// The beginning of a word of a text, as messages show it: long ones are cut, bytes that are not
/// printable become '?'.
std::string shown(std::string_view word);

}  // namespace khoro
