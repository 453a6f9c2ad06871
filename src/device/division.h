// SPDX-License-Identifier: Apache-2.0
#pragma once

// Division of many sums by one number, on the host: what divide() gives, truncated toward zero, but
// by multiplications, because processors do not divide vectors of integers. Floats in the default
// rounding mode stand in for integers that they hold exactly.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/arithmetic.h"

namespace khoro {
namespace detail {

/// Of 32 bits, and a divisor of at least 2. The reciprocal is rounded up, by less than 2^-51 of
/// itself: a quotient that is an integer does not fall below it, and one that is not is too small
/// by at least 1/divisor to reach the next.
template <class T>
[[gnu::always_inline]] inline void divide_words(T* values, std::size_t count,
                                                std::uint32_t divisor) noexcept {
  const double reciprocal = std::nextafter(1.0 / divisor, 1.0);
  constexpr std::uint32_t half = std::is_signed_v<T> ? 0 : 0x80000000;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    // Unsigned by way of signed, which is what processors convert.
    const auto shifted = static_cast<std::int32_t>(static_cast<std::uint32_t>(values[i]) - half);
    const double quotient = (shifted + static_cast<double>(half)) * reciprocal;
    values[i] = static_cast<T>(static_cast<std::int32_t>(quotient));
  }
}

/// Whether all magnitudes are below 2^50.
template <class T>
[[gnu::always_inline]] inline bool all_small(const T* values, std::size_t count) noexcept {
  constexpr std::uint64_t offset = std::is_signed_v<T> ? std::uint64_t{1} << 50 : 0;
  std::uint64_t bits = 0;
#pragma omp simd reduction(| : bits)
  for (std::size_t i = 0; i < count; ++i) bits |= static_cast<std::uint64_t>(values[i]) + offset;
  return bits >> (std::is_signed_v<T> ? 51 : 50) == 0;
}

/// Of magnitudes below 2^50. Adding these numbers to a double leaves an integer in its last places,
/// which the second shows with its sign.
template <class T>
[[gnu::always_inline]] inline void divide_small(T* values, std::size_t count,
                                                std::uint32_t divisor) noexcept {
  constexpr double to_integer = 0x1p52, to_bits = 0x1.8p52;
  const auto base = same_bits<std::uint64_t>(to_bits);
  const double reciprocal = 1.0 / divisor, whole = divisor;
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const double value = same_bits<double>(base + static_cast<std::uint64_t>(values[i])) - to_bits;
    const double magnitude = std::fabs(value);
    // To the nearest integer: the quotient or one more. The remainder is exact and tells which.
    double quotient = magnitude * reciprocal + to_integer - to_integer;
    const double remainder = magnitude - quotient * whole;
    quotient = remainder < 0 ? quotient - 1 : quotient;
    const double result = std::copysign(quotient, value) + to_bits;
    values[i] = static_cast<T>(same_bits<std::uint64_t>(result) - base);
  }
}

}  // namespace detail

/// values[i] = divide(values[i], divisor). Inlined, so that it uses the caller's instructions.
template <class T>
[[gnu::always_inline]] inline void divide_all(T* values, std::size_t count,
                                              std::uint32_t divisor) noexcept {
  constexpr bool word = !std::is_floating_point_v<T> && sizeof(T) == 4;
  constexpr bool two_words = !std::is_floating_point_v<T> && sizeof(T) == 8;
  if (!std::is_floating_point_v<T> && divisor == 1) return;
  if constexpr (word) return detail::divide_words(values, count, divisor);
  if constexpr (two_words)
    if (detail::all_small(values, count)) return detail::divide_small(values, count, divisor);
  for (std::size_t i = 0; i < count; ++i) values[i] = divide(values[i], divisor);
}

}  // namespace khoro
