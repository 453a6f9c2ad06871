// SPDX-License-Identifier: Apache-2.0
#include "executor/lending.h"

#include <fmt/format.h>

namespace khoro {
namespace {

std::string size(std::uint64_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes % (1 << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

}  // namespace

std::vector<LendingLine> lines_of(const LendingRule& rule) {
  const std::string least = fmt::format("from {}", size(rule.least));
  return {
      {"shared input", least, "any", "read in place"},
      {"shared result", least,
       fmt::format("from {}, in place from {}", size(rule.least_of_results),
                   size(rule.least_of_results * rule.in_place)),
       "read in place"},
      {"other input", fmt::format("from {}", size(rule.least_fetched)),
       fmt::format("up to {}, no reduction", size(rule.most_of_fetched)), "copied by the kernel"},
      {"any", "any", "any", "copied through a slot"},
  };
}

}  // namespace khoro
