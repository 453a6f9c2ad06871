// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one element is and how two of them are reduced, for host and device alike. Everything here
// is branch-free on values, so that a vector of elements and a single one give the same bits.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/device.h"
#include "base/dtype.h"

namespace khoro {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

struct Bf16 {
  std::uint16_t bits;
};

/// The unsigned integer with the bits of a T.
template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 2, std::uint16_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 8, std::uint64_t, Uint128>>>;

template <class To, class From>
KHORO_HD inline To same_bits(From value) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

/// Converts between an element in memory and its accumulator; bf16 is rounded to nearest even, and
/// stays a NaN if it is one. Integers are cut to the width of the target.
template <class To, class From>
KHORO_HD inline To convert(From value) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Bf16>) {
    return same_bits<float>(static_cast<std::uint32_t>(value.bits) << 16);
  } else if constexpr (std::is_same_v<To, Bf16>) {
    const auto bits = same_bits<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const std::uint32_t quiet = bits >> 16 | 0x40;
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    return {static_cast<std::uint16_t>(nan ? quiet : rounded)};
  } else {
    return static_cast<To>(value);
  }
}

struct Sum {
  template <class T>
  KHORO_HD static inline T apply(T a, T b) noexcept {
    if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else  // in unsigned, where wrapping is defined
      return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
  }
};

/// The lesser, or with `greatest` the greater: -0.0 < +0.0, and a NaN if either is one.
template <bool greatest>
struct Extreme {
  template <class T>
  KHORO_HD static inline T apply(T a, T b) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      const auto x = same_bits<Bits<T>>(a);
      const auto y = same_bits<Bits<T>>(b);
      const bool first = greatest ? a > b : a < b;
      const bool second = greatest ? b > a : b < a;
      // Equal values differ at most in the sign of zero. The bits of a NaN or'ed with any others
      // are those of a NaN.
      const bool both = greatest && a == b;
      const Bits<T> same = both ? x & y : x | y;
      return same_bits<T>(first ? x : (second ? y : same));
    } else {
      const bool first = greatest ? a > b : a < b;
      return first ? a : b;
    }
  }
};
using Min = Extreme<false>;
using Max = Extreme<true>;

/// Integers truncate toward zero.
template <class T>
KHORO_HD inline T divide(T value, std::uint32_t divisor) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return value / static_cast<T>(divisor);
  } else if constexpr (sizeof(T) == 16) {
    // A division of 128 bits is a call of a library; nearly no sum needs it.
    const auto low = static_cast<std::int64_t>(value);
    return low == value ? low / static_cast<std::int64_t>(divisor) : value / divisor;
  } else {
    return value / static_cast<T>(divisor);
  }
}

/// The types of one (dtype, reduction): in the caller's buffers, in partial results, and in which a
/// step folds.
template <class ElementType, class CarryType, class AccumulatorType>
struct Types {
  using Element = ElementType;
  using Carry = CarryType;
  using Accumulator = AccumulatorType;
};

namespace detail {
template <class Alike, class Average, class F>
KHORO_HD inline auto visit_reduction(Reduction reduction, F&& f) {
  switch (reduction) {
    case Reduction::min:
      return f(Alike{}, Min{});
    case Reduction::max:
      return f(Alike{}, Max{});
    case Reduction::avg:
      return f(Average{}, Sum{});
    case Reduction::sum:
      break;
  }
  return f(Alike{}, Sum{});
}
}  // namespace detail

/// Calls f(Types<...>{}, Operation{}) for a dtype and a reduction. The one place where kernels for
/// host and device come from.
template <class F>
KHORO_HD inline auto visit(Dtype dtype, Reduction reduction, F&& f) {
  using i32 = std::int32_t;
  using i64 = std::int64_t;
  switch (dtype) {
    case Dtype::i32:
      return detail::visit_reduction<Types<i32, i32, i32>, Types<i32, i64, i64>>(reduction, f);
    case Dtype::i64:
      return detail::visit_reduction<Types<i64, i64, i64>, Types<i64, Int128, Int128>>(reduction,
                                                                                       f);
    case Dtype::f32:
      break;
    case Dtype::f64: {
      using Alike = Types<double, double, double>;
      return detail::visit_reduction<Alike, Alike>(reduction, f);
    }
    case Dtype::bf16:
      return detail::visit_reduction<Types<Bf16, Bf16, float>, Types<Bf16, float, float>>(reduction,
                                                                                          f);
  }
  using Alike = Types<float, float, float>;
  return detail::visit_reduction<Alike, Alike>(reduction, f);
}

}  // namespace khoro
