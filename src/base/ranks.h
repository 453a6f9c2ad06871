// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

namespace khoro {

/// "1, 3-5": for messages.
std::string list_of(const std::set<int>& ranks);
/// The same with "rank" or "ranks" before it.
std::string ranks_in_words(const std::set<int>& ranks);

}  // namespace khoro
