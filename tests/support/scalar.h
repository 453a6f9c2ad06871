// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "base/dtype.h"

namespace khoro::test {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

/// One element as it lies in memory, in the dtype or the carry type.
struct Scalar {
  Form form = Form::dtype;
  std::array<std::byte, 16> bytes{};
};

/// The semantics of one element, spelled out slowly: what every kernel is compared with. Shares no
/// code with the kernels.
class ScalarReference {
 public:
  ScalarReference(Dtype dtype, Reduction reduction)
      : dtype_(dtype), reduction_(reduction), carry_(carry_type(dtype, reduction)) {}

  std::size_t bytes(Form form) const {
    return form == Form::carry ? carry_bytes(carry_) : find(dtype_)->bytes;
  }

  Scalar at(const std::byte* data, Form form) const {
    Scalar scalar{form, {}};
    std::memcpy(scalar.bytes.data(), data, bytes(form));
    return scalar;
  }

  /// Folds from left to right in the accumulator, divides unless the divisor is 0, rounds once.
  Scalar fold(Form to, std::span<const Scalar> operands, std::uint32_t divisor) const {
    if (is_float()) {
      double value = real(operands[0]);
      for (const Scalar& operand : operands.subspan(1)) value = reduce(value, real(operand));
      if (divisor != 0) value = narrow(value / divisor);
      return from_real(to, value);
    }
    Wide value = whole(operands[0]);
    for (const Scalar& operand : operands.subspan(1)) value = reduce(value, whole(operand));
    if (divisor != 0) value /= divisor;  // truncates toward zero
    Scalar result{to, {}};
    std::memcpy(result.bytes.data(), &value, bytes(to));  // the low bytes: wraps
    return result;
  }

  /// Equal bits, or both NaN.
  bool equal(const Scalar& a, const Scalar& b) const {
    if (a.form != b.form) return false;
    if (std::memcmp(a.bytes.data(), b.bytes.data(), bytes(a.form)) == 0) return true;
    return is_float() && std::isnan(real(a)) && std::isnan(real(b));
  }

 private:
  bool is_float() const {
    return dtype_ == Dtype::f32 || dtype_ == Dtype::f64 || dtype_ == Dtype::bf16;
  }

  static float float_of(std::uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
  }

  double real(const Scalar& scalar) const {
    const std::size_t size = bytes(scalar.form);
    if (size == 8) {
      double value = 0;
      std::memcpy(&value, scalar.bytes.data(), 8);
      return value;
    }
    std::uint32_t bits = 0;
    std::memcpy(&bits, scalar.bytes.data(), size);
    return static_cast<double>(float_of(size == 2 ? bits << 16 : bits));
  }

  Wide whole(const Scalar& scalar) const {
    const std::size_t size = bytes(scalar.form);
    UnsignedWide bits = 0;
    std::memcpy(&bits, scalar.bytes.data(), size);
    const int shift = 128 - 8 * static_cast<int>(size);
    return static_cast<Wide>(bits << shift) >> shift;
  }

  /// To the accumulator's precision: that of float but for f64. Sums and quotients of two floats,
  /// made in double, round to the same float as if they had been exact.
  double narrow(double value) const {
    return dtype_ == Dtype::f64 ? value : static_cast<double>(static_cast<float>(value));
  }

  double reduce(double a, double b) const {
    if (reduction_ == Reduction::sum || reduction_ == Reduction::avg) return narrow(a + b);
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    return a_is_less == (reduction_ == Reduction::min) ? a : b;
  }

  Wide reduce(Wide a, Wide b) const {
    if (reduction_ == Reduction::min) return a < b ? a : b;
    if (reduction_ == Reduction::max) return a < b ? b : a;
    const UnsignedWide sum = static_cast<UnsignedWide>(a) + static_cast<UnsignedWide>(b);
    const int shift = 128 - 8 * static_cast<int>(carry_bytes(carry_));
    return static_cast<Wide>(sum << shift) >> shift;
  }

  Scalar from_real(Form to, double value) const {
    Scalar result{to, {}};
    const std::size_t size = bytes(to);
    if (size == 8) {
      std::memcpy(result.bytes.data(), &value, 8);
    } else if (size == 4) {
      const auto single = static_cast<float>(value);
      std::memcpy(result.bytes.data(), &single, 4);
    } else {
      const std::uint16_t bits = nearest_bf16(static_cast<float>(value));
      std::memcpy(result.bytes.data(), &bits, 2);
    }
    return result;
  }

  /// By looking at both neighbours.
  static std::uint16_t nearest_bf16(float value) {
    if (std::isnan(value)) return 0x7fc0;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const std::uint32_t toward_zero = bits >> 16;
    if (std::isinf(value)) return static_cast<std::uint16_t>(toward_zero);
    // The next one away from zero may be infinity, which stands for 2^128 here.
    const auto magnitude = [](std::uint32_t half) {
      return (half & 0x7fff) == 0x7f80 ? std::ldexp(1.0, 128)
                                       : std::fabs(static_cast<double>(float_of(half << 16)));
    };
    const double below = std::fabs(static_cast<double>(value)) - magnitude(toward_zero);
    const double above = magnitude(toward_zero + 1) - std::fabs(static_cast<double>(value));
    const bool up = above < below || (above == below && (toward_zero & 1) != 0);
    return static_cast<std::uint16_t>(toward_zero + (up ? 1 : 0));
  }

  Dtype dtype_;
  Reduction reduction_;
  Carry carry_;
};

}  // namespace khoro::test
