// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace khoro {
namespace {

constexpr std::size_t kept_by_nccl = 255;

bool is_hexadecimal(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return low;
}

std::optional<std::string> hexadecimal(std::string_view text) {
  const bool prefixed = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  const std::string_view digits = prefixed ? text.substr(2) : text;
  if (!is_hexadecimal(digits) || digits.size() > 16) return std::nullopt;
  return "0x" + lower(digits);
}

bool is_number(std::string_view text, long long least, long long most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) &&
         value >= static_cast<double>(least) && value <= static_cast<double>(most);
}

bool is_cpu_set(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == ',' || is_hexadecimal({&c, 1});
  });
}

/// The value in canonical spelling; nothing if it is not of the form.
std::optional<std::string> spelled(const AttributeRule& rule, std::string_view value) {
  const auto if_so = [&](bool so) { return so ? std::optional<std::string>(value) : std::nullopt; };
  if (rule.form == Form::hexadecimal) return hexadecimal(value);
  if (rule.form == Form::number) return if_so(is_number(value, rule.least, rule.most));
  if (rule.form == Form::cpu_set) return if_so(is_cpu_set(value));
  if (rule.form == Form::text) return std::string(value);
  const auto integer = integer_of(value);
  return if_so(integer && *integer >= rule.least && *integer <= rule.most);
}

std::string expected(const AttributeRule& rule) {
  if (rule.form == Form::hexadecimal) return "a hexadecimal number";
  if (rule.form == Form::cpu_set) return "hexadecimal words with commas between them";
  return fmt::format("{} from {} to {}", rule.form == Form::integer ? "a whole number" : "a number",
                     rule.least, rule.most);
}

}  // namespace

std::optional<long long> integer_of(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  const bool prefixed = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  if (prefixed) text.remove_prefix(2);
  if (text.empty() || text.front() == '-') return std::nullopt;
  long long value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, prefixed ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return negative ? -value : value;
}

std::optional<std::string> bus_id_of(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  const std::size_t second = text.rfind(':');
  if (dot == std::string_view::npos || second == std::string_view::npos || second > dot)
    return std::nullopt;
  const std::size_t first = second == 0 ? std::string_view::npos : text.rfind(':', second - 1);
  const bool with_domain = first != std::string_view::npos;
  std::string_view domain = with_domain ? text.substr(0, first) : "0000";
  const std::size_t bus_begin = with_domain ? first + 1 : 0;
  const std::string_view bus = text.substr(bus_begin, second - bus_begin);
  const std::string_view device = text.substr(second + 1, dot - second - 1);
  const std::string_view function = text.substr(dot + 1);
  if (!is_hexadecimal(domain) || !is_hexadecimal(bus) || !is_hexadecimal(device) ||
      !is_hexadecimal(function))
    return std::nullopt;
  if (domain.size() > 8 || bus.size() > 2 || device.size() > 2 || function.size() != 1)
    return std::nullopt;
  while (domain.size() > 4 && domain.front() == '0') domain.remove_prefix(1);
  return fmt::format("{:0>4}:{:0>2}:{:0>2}.{}", lower(domain), lower(bus), lower(device),
                     lower(function));
}

Facts read_attributes(const XmlText& xml, pugi::xml_node element,
                      std::span<const AttributeRule> rules, const std::string& place,
                      Findings& findings) {
  Facts facts;
  for (const pugi::xml_attribute attribute : element.attributes()) {
    const std::string_view name = attribute.name();
    const std::string_view value = attribute.value();
    const auto where = [&](Severity severity) {
      return findings.keeps(severity) ? xml.of(element, name) : Position{};
    };
    if (facts.find(name) != facts.end()) {
      findings.warn(where(Severity::warning), place,
                    fmt::format("a second {}: the first one counts", shown(name)));
      continue;
    }
    if (value.size() > kept_by_nccl)
      findings.note(where(Severity::note), place,
                    fmt::format("{}: {} bytes, of which NCCL reads {}", shown(name), value.size(),
                                kept_by_nccl));
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const AttributeRule& r) { return r.name == name; });
    if (rule == rules.end()) {
      findings.note(where(Severity::note), place,
                    fmt::format("{}: an unknown attribute, kept", shown(name)));
      facts.emplace(name, value);
    } else if (auto canonical = spelled(*rule, value)) {
      facts.emplace(name, *std::move(canonical));
    } else if (rule->otherwise == nullptr) {
      findings.error(where(Severity::error), place,
                     fmt::format("{} \"{}\": must be {}; correct it or leave it out", name,
                                 shown(value), expected(*rule)));
    } else {
      const std::string_view otherwise = rule->otherwise;
      findings.warn(where(Severity::warning), place,
                    fmt::format("{} \"{}\": must be {}; {}", name, shown(value), expected(*rule),
                                otherwise.empty() ? std::string("left out")
                                                  : fmt::format("taken for {}", otherwise)));
      if (!otherwise.empty()) facts.emplace(name, otherwise);
    }
  }
  return facts;
}

}  // namespace khoro
