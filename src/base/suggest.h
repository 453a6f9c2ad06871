// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace khoro {

/// How many characters must be inserted, removed, replaced or swapped with their neighbour to turn
/// one word into the other; case does not count.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known word nearest to a mistyped one, or "" when none is near enough to be meant.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace khoro
