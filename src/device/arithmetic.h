// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one element is and how two of them are reduced, for host and device alike. Everything here
// is branch-free on values, so that a vector of elements and a single one give the same bits.

#include <cstdint>
#include <type_traits>

#include "base/device.h"
#include "base/dtype.h"
#include "device/small_float.h"

namespace khoro {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

/// The unsigned integer with the bits of a T.
template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 8, std::uint64_t, Uint128>>>;

/// Converts between an element in memory and its accumulator. Integers are cut to the width of the
/// target.
template <class To, class From>
KHORO_HD inline To convert(From value) noexcept {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (is_small_float<From>)
    return widen(value);
  else if constexpr (is_small_float<To>)
    return round_to<To>(value);
  else
    return static_cast<To>(value);
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

/// A sum that a step may divide.
struct Average : Sum {};

/// A sum of contributions that a step may scale.
struct ScaledSum : Sum {};

struct Product {
  template <class T>
  KHORO_HD static inline T apply(T a, T b) noexcept {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else  // the 1 keeps what is narrower than an int from becoming one
      return static_cast<T>(1u * static_cast<Bits<T>>(a) * static_cast<Bits<T>>(b));
  }
};

struct And {
  template <class T>
  KHORO_HD static inline T apply(T a, T b) noexcept {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  KHORO_HD static inline T apply(T a, T b) noexcept {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  KHORO_HD static inline T apply(T a, T b) noexcept {
    return static_cast<T>(a ^ b);
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
    using Half = std::conditional_t<std::is_same_v<T, Int128>, std::int64_t, std::uint64_t>;
    const auto low = static_cast<Half>(value);
    return low == value ? low / static_cast<Half>(divisor) : value / divisor;
  } else {
    return value / static_cast<T>(divisor);
  }
}

/// The types of one (dtype, reduction): in the caller's buffers, in partial results, and in which a
/// step folds.
template <class ElementType, class CarryType = ElementType, class AccumulatorType = CarryType>
struct Types {
  using Element = ElementType;
  using Carry = CarryType;
  using Accumulator = AccumulatorType;
};

namespace detail {
template <class Reduced, class Averaged, class F>
KHORO_HD inline auto visit_reduction(Reduction reduction, Partials partials, F&& f) {
  if constexpr (is_small_float<typename Reduced::Carry>)
    if (partials == Partials::f32) {
      if (reduction == Reduction::prod) return f(Averaged{}, Product{});
      if (reduction == Reduction::sum) return f(Averaged{}, Sum{});
      if (reduction == Reduction::premul) return f(Averaged{}, ScaledSum{});
    }
  if constexpr (std::is_integral_v<typename Reduced::Element>) {
    if (reduction == Reduction::band) return f(Reduced{}, And{});
    if (reduction == Reduction::bor) return f(Reduced{}, Or{});
    if (reduction == Reduction::bxor) return f(Reduced{}, Xor{});
  }
  if (reduction == Reduction::prod) return f(Reduced{}, Product{});
  if (reduction == Reduction::min) return f(Reduced{}, Min{});
  if (reduction == Reduction::max) return f(Reduced{}, Max{});
  if (reduction == Reduction::avg) return f(Averaged{}, Average{});
  if (reduction == Reduction::premul) return f(Reduced{}, ScaledSum{});
  return f(Reduced{}, Sum{});
}
}  // namespace detail

/// Calls f(Types<...>{}, Operation{}) for a dtype and a reduction that applies to it. The one place
/// where kernels for host and device come from.
template <class F>
KHORO_HD inline auto visit(Dtype dtype, Reduction reduction, Partials partials, F&& f) {
  using detail::visit_reduction;
  using i8 = std::int8_t;
  using u8 = std::uint8_t;
  using i32 = std::int32_t;
  using u32 = std::uint32_t;
  using i64 = std::int64_t;
  using u64 = std::uint64_t;
  switch (dtype) {
    case Dtype::i8:
      return visit_reduction<Types<i8>, Types<i8, i32>>(reduction, partials, f);
    case Dtype::u8:
      return visit_reduction<Types<u8>, Types<u8, u32>>(reduction, partials, f);
    case Dtype::i32:
      return visit_reduction<Types<i32>, Types<i32, i64>>(reduction, partials, f);
    case Dtype::u32:
      return visit_reduction<Types<u32>, Types<u32, u64>>(reduction, partials, f);
    case Dtype::i64:
      return visit_reduction<Types<i64>, Types<i64, Int128>>(reduction, partials, f);
    case Dtype::u64:
      return visit_reduction<Types<u64>, Types<u64, Uint128>>(reduction, partials, f);
    case Dtype::f16:
      return visit_reduction<Types<F16, F16, float>, Types<F16, float>>(reduction, partials, f);
    case Dtype::bf16:
      return visit_reduction<Types<Bf16, Bf16, float>, Types<Bf16, float>>(reduction, partials, f);
    case Dtype::f8e4m3:
      return visit_reduction<Types<F8e4m3, float>, Types<F8e4m3, float>>(reduction, partials, f);
    case Dtype::f8e5m2:
      return visit_reduction<Types<F8e5m2, float>, Types<F8e5m2, float>>(reduction, partials, f);
    case Dtype::f64:
      return visit_reduction<Types<double>, Types<double>>(reduction, partials, f);
    case Dtype::f32:
      break;
  }
  return visit_reduction<Types<float>, Types<float>>(reduction, partials, f);
}

}  // namespace khoro
