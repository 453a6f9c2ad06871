// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace khoro::benchmark {

/// A floating-point format that C++ lacks. Above `largest` there are codes for infinity and NaN, or
/// for NaN alone; what is too large becomes `overflow`.
template <class Word, int exponent_bits, int mantissa_bits, unsigned largest_code,
          unsigned overflow_code>
struct SmallFloat {
  Word bits;
  static constexpr int mantissa = mantissa_bits;
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr unsigned sign = 1u << (exponent_bits + mantissa_bits);
  static constexpr unsigned largest = largest_code;
  static constexpr unsigned overflow = overflow_code;
  static constexpr bool has_infinity = (largest + 1) % (1u << mantissa) == 0;
};

using Half = SmallFloat<std::uint16_t, 5, 10, 0x7bff, 0x7c00>;
using Bfloat16 = SmallFloat<std::uint16_t, 8, 7, 0x7f7f, 0x7f80>;
using Fp8E4m3 = SmallFloat<std::uint8_t, 4, 3, 0x7e, 0x7e>;
using Fp8E5m2 = SmallFloat<std::uint8_t, 5, 2, 0x7b, 0x7b>;

template <class T>
inline constexpr bool is_standard = std::is_arithmetic_v<T>;

/// Two to a power that a normal double holds.
inline double power(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

template <class T>
double to_double(T value) noexcept {
  if constexpr (is_standard<T>) {
    return value;
  } else {
    const unsigned magnitude = value.bits & (T::sign - 1);
    const int exponent = static_cast<int>(magnitude >> T::mantissa);
    const unsigned fraction = magnitude & ((1u << T::mantissa) - 1);
    double number =
        exponent == 0 ? fraction * power(1 - T::bias - T::mantissa)
                      : ((1u << T::mantissa) + fraction) * power(exponent - T::bias - T::mantissa);
    if (magnitude > T::largest)
      number = T::has_infinity && fraction == 0 ? std::numeric_limits<double>::infinity()
                                                : std::numeric_limits<double>::quiet_NaN();
    return value.bits & T::sign ? -number : number;
  }
}

/// To nearest even.
template <class T>
T from_double(double value) noexcept {
  if constexpr (is_standard<T>) {
    return static_cast<T>(value);
  } else {
    const double magnitude = std::fabs(value);
    const int exponent =
        static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> 52) - 1023;  // 1024: not finite
    unsigned code = T::overflow;
    if (exponent < T::bias + 2) {
      // In units of the last place the number is an integer; adding 2^52 rounds it to one.
      const int least = exponent < 1 - T::bias ? 1 - T::bias : exponent;
      const double units = magnitude * power(T::mantissa - least);
      const auto rounded = static_cast<unsigned>(units + 0x1p52 - 0x1p52);
      code = (static_cast<unsigned>(least + T::bias - 1) << T::mantissa) + rounded;
      if (code > T::largest) code = T::overflow;
    }
    if (std::isnan(value)) code = T::sign - 1;
    if (std::signbit(value)) code |= T::sign;
    return {static_cast<decltype(T::bits)>(code)};
  }
}

}  // namespace khoro::benchmark
