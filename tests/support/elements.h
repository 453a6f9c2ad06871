// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#include "base/dtype.h"

namespace khoro::test {

/// Elements over which rounding, overflow, cancellation, NaN and zeros matter.
inline void fill_elements(std::byte* data, std::size_t count, Dtype dtype,
                          std::mt19937_64& random) {
  const std::size_t size = find(dtype)->bytes;
  const bool is_float = !find(dtype)->integer;
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const element = data + i * size;
    const std::uint64_t bits = random(), odds = random();
    std::memcpy(element, &bits, size);
    if (!is_float || odds % 16 == 0) continue;  // any bits: NaN, infinity, subnormals
    const bool zero = odds / 16 % 16 == 0;
    if (zero)
      for (std::size_t b = 0; b + 1 < size; ++b) element[b] = std::byte{0};
    element[size - 1] = static_cast<std::byte>((zero ? 0 : 0x3f) | (odds / 256 % 2 ? 0x80 : 0));
  }
}

}  // namespace khoro::test
