// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace khoro {
namespace {

constexpr std::size_t most_kept = 200;

}  // namespace

void Findings::note(Position where, std::string place, std::string message) {
  add(Severity::note, where, std::move(place), std::move(message));
}

void Findings::warn(Position where, std::string place, std::string message) {
  add(Severity::warning, where, std::move(place), std::move(message));
}

void Findings::error(Position where, std::string place, std::string message) {
  add(Severity::error, where, std::move(place), std::move(message));
}

bool Findings::keeps(Severity severity) const noexcept {
  // Why it cannot be used must not be lost among the notes.
  return kept_.size() < most_kept || (severity == Severity::error && !failed_);
}

void Findings::add(Severity severity, Position where, std::string place, std::string message) {
  const bool kept = keeps(severity);
  failed_ |= severity == Severity::error;
  if (!kept)
    ++dropped_;
  else
    kept_.push_back({where.line, std::move(place), std::move(message), where.column, severity});
}

std::vector<Diagnostic> Findings::take() {
  const auto position = [](const Diagnostic& d) { return std::tie(d.line, d.column); };
  std::stable_sort(kept_.begin(), kept_.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    return position(a) < position(b);
  });
  if (dropped_ > 0)
    kept_.push_back(
        {0, "", fmt::format("{} more of this kind are not shown", dropped_), 0, Severity::note});
  return std::move(kept_);
}

std::string shown(std::string_view word) {
  constexpr std::size_t most = 60;
  std::string text(word.substr(0, most));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  return word.size() > most ? text + "..." : text;
}

}  // namespace khoro
