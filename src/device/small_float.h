// SPDX-License-Identifier: Apache-2.0
#pragma once

// Floating-point formats that no processor adds in: they are widened to f32, which is exact, and
// rounded from it to nearest even. Everything is branch-free, and what is not integer arithmetic is
// one operation of f32 that is exact or rounds as the format wants, in the default mode: so a
// vector and a single element, host and device give the same bits.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/device.h"

namespace khoro {

template <class To, class From>
KHORO_HD inline To same_bits(From value) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

struct Bf16 {
  std::uint16_t bits;
};

/// Of the formats below, whose exponents are shorter than that of f32: magnitudes from `special` on
/// are infinity or NaN, what is too large (infinity included) becomes `overflow`, and `least` is
/// the smallest subnormal.
struct F16 {
  std::uint16_t bits;
  static constexpr int mantissa_bits = 10;
  static constexpr std::uint32_t bias = 15;
  static constexpr std::uint32_t special = 0x7c00;
  static constexpr std::uint32_t overflow = 0x7c00;  // infinity
  static constexpr std::uint32_t nan = 0x7e00;
  static constexpr float least = 0x1p-24f;
};

struct F8e4m3 {
  std::uint8_t bits;
  static constexpr int mantissa_bits = 3;
  static constexpr std::uint32_t bias = 7;
  static constexpr std::uint32_t special = 0x7f;   // NaN; there is no infinity
  static constexpr std::uint32_t overflow = 0x7e;  // 448
  static constexpr std::uint32_t nan = 0x7f;
  static constexpr float least = 0x1p-9f;
};

struct F8e5m2 {
  std::uint8_t bits;
  static constexpr int mantissa_bits = 2;
  static constexpr std::uint32_t bias = 15;
  static constexpr std::uint32_t special = 0x7c;
  static constexpr std::uint32_t overflow = 0x7b;  // 57344
  static constexpr std::uint32_t nan = 0x7e;
  static constexpr float least = 0x1p-16f;
};

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, Bf16> || std::is_same_v<T, F16> ||
                                       std::is_same_v<T, F8e4m3> || std::is_same_v<T, F8e5m2>;

KHORO_HD inline float widen(Bf16 value) noexcept {
  return same_bits<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class Small>
KHORO_HD inline float widen(Small value) noexcept {
  constexpr int shift = 23 - Small::mantissa_bits;
  constexpr int unused = 32 - 8 * static_cast<int>(sizeof(Small));
  constexpr std::uint32_t first_normal = 1u << Small::mantissa_bits;
  const std::uint32_t aligned = static_cast<std::uint32_t>(value.bits) << unused;
  const std::uint32_t magnitude = (aligned & 0x7fffffff) >> unused;
  const std::uint32_t normal = (magnitude << shift) + ((127 - Small::bias) << 23);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * Small::least;
  std::uint32_t bits = magnitude < first_normal ? same_bits<std::uint32_t>(subnormal) : normal;
  bits = magnitude >= Small::special ? magnitude << shift | 0x7f800000 : bits;
  return same_bits<float>(bits | (aligned & 0x80000000));
}

/// To nearest even; a NaN stays one.
template <class Small>
KHORO_HD inline Small round_to(float value) noexcept {
  const auto bits = same_bits<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const bool nan = magnitude > 0x7f800000;
  if constexpr (std::is_same_v<Small, Bf16>) {
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const std::uint32_t quiet = bits >> 16 | 0x40;
    return {static_cast<std::uint16_t>(nan ? quiet : rounded)};
  } else {
    constexpr int shift = 23 - Small::mantissa_bits;
    constexpr int unused = 32 - 8 * static_cast<int>(sizeof(Small));
    constexpr std::uint32_t below_half = (1u << (shift - 1)) - 1;
    constexpr std::uint32_t first_normal = (128 - Small::bias) << 23;
    // The last place of this number is that of the subnormals, so adding it rounds to them.
    constexpr float anchor = Small::least * 0x1p23f;
    const std::uint32_t odd = magnitude >> shift & 1;
    const std::uint32_t rebiased = magnitude - ((127 - Small::bias) << 23);
    std::uint32_t normal = (rebiased + below_half + odd) >> shift;
    normal = normal < Small::overflow ? normal : Small::overflow;
    const float anchored = same_bits<float>(magnitude) + anchor;
    const std::uint32_t subnormal =
        same_bits<std::uint32_t>(anchored) - same_bits<std::uint32_t>(anchor);
    std::uint32_t code = magnitude < first_normal ? subnormal : normal;
    code = nan ? Small::nan : code;
    return {static_cast<decltype(Small::bits)>(code | (bits & 0x80000000) >> unused)};
  }
}

}  // namespace khoro
