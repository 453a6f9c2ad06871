// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace khoro {

/// A number of a site, link, vertex or edge, as containers are indexed.
constexpr std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

}  // namespace khoro
