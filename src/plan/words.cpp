// SPDX-License-Identifier: Apache-2.0
#include "plan/words.h"

#include <fmt/format.h>

#include <charconv>

namespace khoro {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }
bool is_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string quoted(std::string_view word) {
  if (word.empty()) return "the end of the line";
  const auto c = static_cast<unsigned char>(word.front());
  if (c < 0x20 || c > 0x7e) return fmt::format("byte 0x{:02x}", c);
  constexpr std::size_t most = 40;
  return fmt::format("\"{}{}\"", word.substr(0, most), word.size() > most ? "..." : "");
}

}  // namespace

Words::Words(std::string_view line) : rest_(line.substr(0, line.find('#'))) { advance(); }

void Words::advance() {
  while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  std::size_t length = rest_.empty() ? 0 : 1;
  if (length > 0 && is_digit(rest_.front())) {
    while (length < rest_.size() && is_digit(rest_[length])) ++length;
  } else if (length > 0 && is_letter(rest_.front())) {
    while (length < rest_.size() && (is_letter(rest_[length]) || is_digit(rest_[length]) ||
                                     rest_[length] == '_' || rest_[length] == '-'))
      ++length;
  }
  current_ = rest_.substr(0, length);
  rest_.remove_prefix(length);
}

bool Words::take(std::string_view word) {
  if (current_ != word) return false;
  advance();
  return true;
}

void Words::expect(std::string_view word) {
  if (!take(word)) refuse(fmt::format("\"{}\"", word));
}

void Words::expect_end() {
  if (!at_end()) refuse("the end of the line");
}

std::string_view Words::name(std::string_view what) {
  if (at_end() || !is_letter(current_.front())) refuse(what);
  const std::string_view name = current_;
  advance();
  return name;
}

int Words::number(std::string_view what, int least, int most) {
  if (at_end() || !is_digit(current_.front())) refuse(what);
  int value = 0;
  const auto [end, error] =
      std::from_chars(current_.data(), current_.data() + current_.size(), value);
  if (error != std::errc{} || value < least || value > most)
    throw Refusal{fmt::format("{} {}: must be {}..{}", what, current_, least, most)};
  advance();
  return value;
}

void Words::refuse(std::string_view expected) const {
  throw Refusal{fmt::format("expected {}, found {}", expected, quoted(current_))};
}

}  // namespace khoro
