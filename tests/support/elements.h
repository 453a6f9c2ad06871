// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>

#include "base/dtype.h"

namespace khoro::test {

/// Elements over which rounding, overflow, cancellation, NaN and zeros matter.
inline void fill_elements(std::byte* data, std::size_t count, Dtype dtype,
                          std::mt19937_64& random) {
  const std::size_t size = find(dtype)->bytes;
  const bool is_float = !find(dtype)->integer;
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* element = data + i * size;
    for (std::size_t b = 0; b < size; ++b) element[b] = static_cast<std::byte>(random());
    if (!is_float || random() % 16 == 0) continue;  // any bits: NaN, infinity, subnormals
    const bool zero = random() % 16 == 0;
    if (zero)
      for (std::size_t b = 0; b + 1 < size; ++b) element[b] = std::byte{0};
    element[size - 1] = static_cast<std::byte>((zero ? 0 : 0x3f) | (random() & 1 ? 0x80 : 0));
  }
}

}  // namespace khoro::test
