// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/text_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "topology/formats/findings.h"

namespace khoro {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.:,/+-@").find(c) != std::string_view::npos;
}

int digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string quoted_word(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string text = "\"";
  for (char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      text += fmt::format("\\x{:02x}", byte);
    else
      text += c;
  }
  return text + "\"";
}

std::string decimal(double value, int places) {
  if (value == 0) return "0";
  std::array<char, 32> buffer{};
  // The shortest digits that tell it from other values, "2.06e+10", which become another power of
  // ten without a loss.
  const auto end =
      std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  if (e == std::string_view::npos) return std::string(text);  // inf, nan
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(),
                  exponent);
  exponent += places;
  const bool negative = text.front() == '-';
  std::string digits(text.substr(negative ? 1 : 0, e - (negative ? 1 : 0)));
  digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
  const auto count = static_cast<int>(digits.size());
  if (exponent < -9 || exponent > 15)
    digits = fmt::format("{}{}{}e{}", digits[0], count > 1 ? "." : "", digits.substr(1), exponent);
  else if (exponent < 0)
    digits = fmt::format("0.{:0>{}}{}", "", -exponent - 1, digits);
  else if (count <= exponent + 1)
    digits += std::string(static_cast<std::size_t>(exponent + 1 - count), '0');
  else
    digits.insert(digits.begin() + exponent + 1, '.');
  return fmt::format("{}{}", negative ? "-" : "", digits);
}

LineWords::LineWords(std::string_view line) : line_(line) { pass(0); }

void LineWords::pass(std::size_t bytes) {
  rest_ += bytes;
  while (rest_ < line_.size() && is_blank(line_[rest_])) ++rest_;
  if (rest_ < line_.size() && line_[rest_] == '#') line_ = line_.substr(0, rest_);
}

std::string_view LineWords::plain() const {
  std::size_t end = rest_;
  while (end < line_.size() && is_plain(line_[end])) ++end;
  return line_.substr(rest_, end - rest_);
}

bool LineWords::take(std::string_view word) {
  const bool sign = !is_plain(word.front()) || !is_plain(word.back());
  const std::string_view next = sign ? line_.substr(rest_, word.size()) : plain();
  if (next != word) return false;
  pass(word.size());
  return true;
}

bool LineWords::take_prefix(std::string_view sign) {
  if (line_.substr(rest_, sign.size()) != sign) return false;
  rest_ += sign.size();
  return true;
}

void LineWords::expect(std::string_view word) {
  if (!take(word)) refuse(fmt::format("\"{}\"", word));
}

void LineWords::expect_end() const {
  if (!at_end()) refuse("the end of the line");
}

std::string LineWords::word(std::string_view what) {
  if (!at_end() && line_[rest_] == '"') return quoted();
  const std::string_view next = plain();
  if (next.empty()) refuse(what);
  pass(next.size());
  return std::string(next);
}

std::string LineWords::quoted() {
  const std::size_t begin = rest_++;
  std::string text;
  while (rest_ < line_.size() && line_[rest_] != '"') {
    const char c = line_[rest_++];
    text += c == '\\' ? escaped() : c;
  }
  if (rest_ == line_.size()) throw WordFault{begin, "the line ends inside the quotes"};
  pass(1);
  return text;
}

char LineWords::escaped() {
  const std::string_view next = line_.substr(rest_, 3);
  if (!next.empty() && (next[0] == '"' || next[0] == '\\')) {
    ++rest_;
    return next[0];
  }
  if (next.size() == 3 && next[0] == 'x' && digit(next[1]) >= 0 && digit(next[2]) >= 0) {
    rest_ += 3;
    return static_cast<char>(16 * digit(next[1]) + digit(next[2]));
  }
  throw WordFault{rest_, "after \\ comes \", \\ or x and two digits"};
}

int LineWords::number(std::string_view what, int least, int most) {
  const std::string_view next = plain();
  int value = 0;
  const auto [end, error] = std::from_chars(next.data(), next.data() + next.size(), value);
  if (next.empty() || error != std::errc{} || end != next.data() + next.size() || value < least ||
      value > most)
    refuse(fmt::format("{} from {} to {}", what, least, most));
  pass(next.size());
  return value;
}

double LineWords::rate(std::string_view what, int places) {
  const std::string_view next = plain();
  const std::size_t e = std::min(next.find('e'), next.size());
  int exponent = 0;
  if (e < next.size()) {
    const char* const begin = next.data() + e + 1;
    const auto [end, error] = std::from_chars(begin, next.data() + next.size(), exponent);
    if (error != std::errc{} || end != next.data() + next.size() || std::abs(exponent) > 400)
      refuse(what);
  }
  const std::string text = fmt::format("{}e{}", next.substr(0, e), exponent - places);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      std::signbit(value))
    refuse(what);
  pass(next.size());
  return value;
}

void LineWords::refuse(std::string_view expected) const {
  const std::string_view next = plain();
  std::string found =
      at_end() ? "the end of the line"
               : fmt::format("\"{}\"", shown(next.empty() ? line_.substr(rest_, 1) : next));
  throw WordFault{rest_, fmt::format("expected {}, found {}", expected, found)};
}

}  // namespace khoro
