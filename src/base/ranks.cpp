// SPDX-License-Identifier: Apache-2.0
#include "base/ranks.h"

#include <fmt/format.h>

#include <iterator>

namespace khoro {

std::string list_of(const std::set<int>& ranks) {
  std::string list;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first;
    while (std::next(last) != ranks.end() && *std::next(last) == *last + 1) ++last;
    list += list.empty() ? "" : ", ";
    list += *first == *last ? std::to_string(*first) : fmt::format("{}-{}", *first, *last);
    first = std::next(last);
  }
  return list;
}

std::string ranks_in_words(const std::set<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", list_of(ranks));
}

}  // namespace khoro
