// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace khoro {

/// Why a line is refused; the parser turns it into a diagnostic of that line.
struct Refusal {
  std::string message;
};

/// One line of a plan taken apart into names, numbers and signs. What is not as asked throws
/// `Refusal`. Borrows the line.
class Words {
 public:
  /// Blanks and what follows a `#` do not count.
  explicit Words(std::string_view line);

  bool at_end() const noexcept { return current_.empty(); }
  /// The name or sign that comes next, not taken yet; empty at the end.
  std::string_view peek() const noexcept { return current_; }
  /// Takes `word` if it comes next.
  bool take(std::string_view word);

  void expect(std::string_view word);
  void expect_end();
  /// A name: a small letter, then small letters, digits, `_` and `-`. `what` is for the message.
  std::string_view name(std::string_view what);
  /// A number from `least` to `most`.
  int number(std::string_view what, int least, int most);

  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  void advance();

  std::string_view rest_;
  std::string_view current_;
};

}  // namespace khoro
