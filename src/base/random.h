// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace khoro {

/// Fills `bytes` from the system's random source, fit for keys. Throws system_error.
void draw_random(std::span<std::uint8_t> bytes);
std::uint64_t draw_random();

}  // namespace khoro
