// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace khoro {

/// A word as it stands in a line: quoted unless it is plain.
std::string quoted_word(std::string_view word);

/// `value` times ten to the `places`, in as few digits as tell it from other values.
std::string decimal(double value, int places);

/// Why a line is refused, and at which of its bytes.
struct WordFault {
  std::size_t offset = 0;
  std::string message;
};

/// One line of a topology's text taken apart. What is not as asked throws `WordFault`. Borrows the
/// line.
class LineWords {
 public:
  explicit LineWords(std::string_view line);

  bool at_end() const noexcept { return rest_ == line_.size(); }
  /// Of what comes next.
  std::size_t offset() const noexcept { return rest_; }
  /// Takes `word` if it comes next, unquoted and alone.
  bool take(std::string_view word);
  /// Takes a sign that stands before a number, as in "x2".
  bool take_prefix(std::string_view sign);
  void expect(std::string_view word);
  void expect_end() const;
  /// A word, plain or quoted, with its quotes removed.
  std::string word(std::string_view what);
  int number(std::string_view what, int least, int most);
  /// A decimal, divided by ten to the `places`: the inverse of decimal().
  double rate(std::string_view what, int places);

  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  std::string_view plain() const;
  void pass(std::size_t bytes);
  std::string quoted();
  char escaped();

  std::string_view line_;
  std::size_t rest_ = 0;
};

}  // namespace khoro
