// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/dtype.h"

namespace khoro::test {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

/// One element as it lies in memory, in the dtype or the carry type.
struct Scalar {
  Form form = Form::dtype;
  std::array<std::byte, 16> bytes{};
};

/// A floating-point format of 8 or 16 bits, by the list of its numbers.
class SmallFormat {
 public:
  struct Layout {
    int bytes, exponent_bits, mantissa_bits;
    bool has_infinity;  // as IEEE's formats do; else all ones alone are a NaN
    bool saturates;
  };

  explicit SmallFormat(const Layout& layout) : layout_(layout) {
    const int bias = (1 << (layout.exponent_bits - 1)) - 1;
    const unsigned one = 1u << layout.mantissa_bits;
    const auto number = [&](unsigned code) {
      const int exponent = static_cast<int>(code >> layout.mantissa_bits);
      const unsigned mantissa = code & (one - 1);
      return exponent == 0 ? std::ldexp(mantissa, 1 - bias - layout.mantissa_bits)
                           : std::ldexp(one + mantissa, exponent - bias - layout.mantissa_bits);
    };
    const unsigned end = layout.has_infinity ? sign_bit() - one : sign_bit() - 1;
    for (unsigned code = 0; code < end; ++code) finite_.push_back(number(code));
    next_ = number(end);
  }

  unsigned sign_bit() const { return 1u << (8 * layout_.bytes - 1); }
  /// The finite numbers that are not negative; the index is the code.
  const std::vector<double>& finite() const { return finite_; }
  /// What would follow the largest one.
  double next() const { return next_; }

  double value(unsigned code) const {
    const unsigned magnitude = code & (sign_bit() - 1);
    double result = std::numeric_limits<double>::quiet_NaN();
    if (magnitude < finite_.size()) result = finite_[magnitude];
    if (magnitude == finite_.size() && layout_.has_infinity)
      result = std::numeric_limits<double>::infinity();
    return code & sign_bit() ? -result : result;
  }

  /// The nearest, by looking at both neighbours; the even code when they are equally near.
  unsigned code(double value) const {
    const unsigned magnitude = std::isnan(value) ? sign_bit() - 1 : nearest(std::fabs(value));
    return std::signbit(value) ? magnitude | sign_bit() : magnitude;
  }

 private:
  unsigned nearest(double magnitude) const {
    const auto above = std::upper_bound(finite_.begin(), finite_.end(), magnitude);
    const auto up = static_cast<unsigned>(above - finite_.begin());
    const bool too_large = above == finite_.end();
    if (too_large && layout_.saturates) return up - 1;
    if (too_large && magnitude >= next_) return up;
    const double to_greater = (too_large ? next_ : *above) - magnitude;
    const double to_less = magnitude - finite_[up - 1];
    const bool goes_up = to_greater < to_less || (to_greater == to_less && up % 2 == 0);
    return goes_up ? up : up - 1;
  }

  Layout layout_;
  std::vector<double> finite_;
  double next_ = 0;
};

/// Null for types of other widths.
inline const SmallFormat* small_format(Dtype dtype) {
  static const SmallFormat f16({2, 5, 10, true, false});
  static const SmallFormat bf16({2, 8, 7, true, false});
  static const SmallFormat f8e4m3({1, 4, 3, false, true});
  static const SmallFormat f8e5m2({1, 5, 2, true, true});
  switch (dtype) {
    case Dtype::f16:
      return &f16;
    case Dtype::bf16:
      return &bf16;
    case Dtype::f8e4m3:
      return &f8e4m3;
    case Dtype::f8e5m2:
      return &f8e5m2;
    default:
      return nullptr;
  }
}

/// A function of the bits of two elements, of whose result those count that an element has.
using BitFunction = std::uint64_t (*)(std::uint64_t left, std::uint64_t right);

/// What a reduction works in.
struct Arithmetic {
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  Partials partials = Partials::dtype;
  BitFunction function = nullptr;  // of Reduction::user

  /// Of an element in that form. A function knows no type but the dtype.
  std::size_t bytes(Form form) const {
    return form == Form::carry && reduction != Reduction::user
               ? carry_bytes(carry_type(dtype, reduction, partials))
               : find(dtype)->bytes;
  }
};

/// The semantics of one element, spelled out slowly: what every kernel is compared with. Shares no
/// code with the kernels.
class ScalarReference {
 public:
  explicit ScalarReference(const Arithmetic& arithmetic)
      : dtype_(arithmetic.dtype),
        reduction_(arithmetic.reduction),
        function_(arithmetic.function),
        small_(small_format(arithmetic.dtype)),
        element_bytes_(arithmetic.bytes(Form::dtype)),
        carry_bytes_(arithmetic.bytes(Form::carry)) {}

  std::size_t bytes(Form form) const { return form == Form::carry ? carry_bytes_ : element_bytes_; }

  Scalar at(const std::byte* data, Form form) const {
    Scalar scalar{form, {}};
    std::memcpy(scalar.bytes.data(), data, bytes(form));
    return scalar;
  }

  /// Folds from left to right in the accumulator, divides unless the divisor is 0, rounds once.
  /// What is only passed on is a copy. Operands that have a factor are multiplied by it.
  Scalar fold(Form to, std::span<const Scalar> operands, std::uint32_t divisor,
              std::span<const Scalar* const> factors = {}) const {
    const auto factor = [&](std::size_t k) { return factors.empty() ? nullptr : factors[k]; };
    const bool scales = std::any_of(factors.begin(), factors.end(),
                                    [](const Scalar* each) { return each != nullptr; });
    if (operands.size() == 1 && divisor == 0 && operands[0].form == to && !scales)
      return operands[0];
    if (function_ != nullptr) return fold_bits(to, operands);
    if (!find(dtype_)->integer) {
      const auto part = [&](std::size_t k) {
        const double own = real(operands[k]);
        return factor(k) ? narrow(own * real(*factor(k))) : own;
      };
      double value = part(0);
      for (std::size_t k = 1; k < operands.size(); ++k) value = reduce(value, part(k));
      if (divisor != 0) value = narrow(value / divisor);
      return from_real(to, value);
    }
    const auto part = [&](std::size_t k) {
      const UnsignedWide own = whole(operands[k], bytes(operands[k].form));
      return factor(k) ? wrap(own * whole(*factor(k), element_bytes_)) : own;
    };
    UnsignedWide value = part(0);
    for (std::size_t k = 1; k < operands.size(); ++k) value = reduce(value, part(k));
    if (divisor != 0) value = divide(value, divisor);
    Scalar result{to, {}};
    std::memcpy(result.bytes.data(), &value, bytes(to));  // the low bytes: wraps
    return result;
  }

  /// Equal bits, or both NaN of a reduction that knows of any.
  bool equal(const Scalar& a, const Scalar& b) const {
    if (a.form != b.form) return false;
    if (std::memcmp(a.bytes.data(), b.bytes.data(), bytes(a.form)) == 0) return true;
    const bool may_be_nan = !find(dtype_)->integer && function_ == nullptr;
    return may_be_nan && std::isnan(real(a)) && std::isnan(real(b));
  }

 private:
  Scalar fold_bits(Form to, std::span<const Scalar> operands) const {
    Scalar result{to, operands[0].bytes};
    for (const Scalar& operand : operands.subspan(1)) {
      const std::uint64_t bits = function_(bits_of(result), bits_of(operand));
      std::memcpy(result.bytes.data(), &bits, element_bytes_);
    }
    return result;
  }
  std::uint64_t bits_of(const Scalar& scalar) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, scalar.bytes.data(), element_bytes_);
    return bits;
  }

  bool is_signed() const {
    return dtype_ == Dtype::i8 || dtype_ == Dtype::i32 || dtype_ == Dtype::i64;
  }

  double real(const Scalar& scalar) const {
    const std::size_t size = bytes(scalar.form);
    if (size == 8) return bits_as<double>(scalar);
    if (size == 4) return static_cast<double>(bits_as<float>(scalar));
    unsigned code = 0;
    std::memcpy(&code, scalar.bytes.data(), size);
    return small_->value(code);
  }

  template <class T>
  static T bits_as(const Scalar& scalar) {
    T value = 0;
    std::memcpy(&value, scalar.bytes.data(), sizeof value);
    return value;
  }

  /// As 128 bits; of a signed type with its sign.
  UnsignedWide whole(const Scalar& scalar, std::size_t size) const {
    UnsignedWide bits = 0;
    std::memcpy(&bits, scalar.bytes.data(), size);
    const int shift = 128 - 8 * static_cast<int>(size);
    if (!is_signed()) return bits;
    return static_cast<UnsignedWide>(static_cast<Wide>(bits << shift) >> shift);
  }

  /// To the accumulator's precision: that of float but for f64. Sums, products and quotients of two
  /// floats, made in double, round to the same float as if they had been exact.
  double narrow(double value) const {
    return dtype_ == Dtype::f64 ? value : static_cast<double>(static_cast<float>(value));
  }

  double reduce(double a, double b) const {
    if (reduction_ == Reduction::sum || reduction_ == Reduction::avg ||
        reduction_ == Reduction::premul)
      return narrow(a + b);
    if (reduction_ == Reduction::prod) return narrow(a * b);
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    const bool a_is_less = a < b || (a == b && std::signbit(a) && !std::signbit(b));
    return a_is_less == (reduction_ == Reduction::min) ? a : b;
  }

  UnsignedWide reduce(UnsignedWide a, UnsignedWide b) const {
    const bool a_is_less = is_signed() ? static_cast<Wide>(a) < static_cast<Wide>(b) : a < b;
    switch (reduction_) {
      case Reduction::min:
        return a_is_less ? a : b;
      case Reduction::max:
        return a_is_less ? b : a;
      case Reduction::prod:
        return wrap(a * b);
      case Reduction::band:
        return a & b;
      case Reduction::bor:
        return a | b;
      case Reduction::bxor:
        return a ^ b;
      case Reduction::sum:
      case Reduction::avg:
      case Reduction::premul:
      case Reduction::user:
        break;
    }
    return wrap(a + b);
  }

  UnsignedWide wrap(UnsignedWide value) const {
    Scalar low{Form::carry, {}};
    std::memcpy(low.bytes.data(), &value, carry_bytes_);
    return whole(low, carry_bytes_);
  }

  /// Truncates toward zero.
  UnsignedWide divide(UnsignedWide value, std::uint32_t divisor) const {
    const bool negative = is_signed() && static_cast<Wide>(value) < 0;
    return negative ? -(-value / divisor) : value / divisor;
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
      const unsigned code = small_->code(value);
      std::memcpy(result.bytes.data(), &code, size);
    }
    return result;
  }

  Dtype dtype_;
  Reduction reduction_;
  BitFunction function_;
  const SmallFormat* small_;
  std::size_t element_bytes_, carry_bytes_;
};

}  // namespace khoro::test
