// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "numbers.h"

namespace khoro::benchmark {
namespace {

__extension__ using Int128 = __int128;

__extension__ using Uint128 = unsigned __int128;

constexpr TypeRow type_rows[] = {
    {"int8", khoroInt8, 1},           {"uint8", khoroUint8, 1},
    {"int32", khoroInt32, 4},         {"uint32", khoroUint32, 4},
    {"int64", khoroInt64, 8},         {"uint64", khoroUint64, 8},
    {"half", khoroFloat16, 2},        {"float", khoroFloat32, 4},
    {"double", khoroFloat64, 8},      {"bfloat16", khoroBfloat16, 2},
    {"fp8_e4m3", khoroFloat8e4m3, 1}, {"fp8_e5m2", khoroFloat8e5m2, 1}};

constexpr OpRow op_rows[] = {{"sum", khoroSum, false}, {"prod", khoroProd, false},
                             {"max", khoroMax, false}, {"min", khoroMin, false},
                             {"avg", khoroAvg, false}, {"band", khoroBand, true},
                             {"bor", khoroBor, true},  {"bxor", khoroBxor, true}};

std::uint64_t mix(std::uint64_t word) noexcept {
  word = (word ^ (word >> 33)) * 0xff51afd7ed558ccdULL;
  word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return word ^ (word >> 33);
}

std::uint64_t draw_word(const Draw& draw, int rank, std::uint64_t index) noexcept {
  return mix(index * 0x9e3779b97f4a7c15ULL +
             static_cast<std::uint64_t>(rank) * 0xd1b54a32d192ed03ULL +
             draw.seed * 0x8cb92ba72f3d8dd7ULL);
}

/// Integers of a float type are exact up to two to this power, and so are powers of two up to the
/// other one and down to its inverse.
template <class T>
constexpr int exact_bits() {
  if constexpr (is_standard<T>)
    return std::numeric_limits<T>::digits;
  else
    return T::mantissa + 1;
}
template <class T>
constexpr int most_exponent() {
  if constexpr (is_standard<T>)
    return std::numeric_limits<T>::max_exponent - 2;
  else
    return T::bias - 1;
}
template <class T>
constexpr double scale = exact_bits<T>() < 11 ? 1.0 / 16 : 1.0 / 1024;

/// The input is this times the scale. The sum of the magnitudes over all ranks stays exact.
template <class T>
std::int64_t draw_multiple(const Draw& draw, int rank, std::uint64_t index) noexcept {
  const std::uint64_t word = draw_word(draw, rank, index);
  const auto ranks = static_cast<std::uint64_t>(draw.ranks);
  const std::uint64_t limit = std::bit_floor((1ULL << exact_bits<T>()) / ranks);
  if (limit == 0) {  // more ranks than units: most of them add nothing
    const std::uint64_t groups = ranks / (1ULL << exact_bits<T>()) + 1;
    const bool counts = (static_cast<std::uint64_t>(rank) + index) % groups == 0;
    return counts ? static_cast<std::int64_t>(word & 1) : 0;
  }
  return static_cast<std::int64_t>(word & (2 * limit - 1)) - static_cast<std::int64_t>(limit);
}

/// The input of a product is two to this power, with a sign. The sum of the magnitudes over all
/// ranks stays in range.
template <class T>
int draw_exponent(const Draw& draw, int rank, std::uint64_t index) noexcept {
  const int groups = (draw.ranks - 1) / most_exponent<T>() + 1;  // of which one takes part
  if ((static_cast<std::uint64_t>(rank) + index) % static_cast<std::uint64_t>(groups) != 0)
    return 0;
  const int limit = std::max(1, most_exponent<T>() / draw.ranks);
  const std::uint64_t word = draw_word(draw, rank, index);
  return static_cast<int>(word % static_cast<std::uint64_t>(2 * limit + 1)) - limit;
}

bool draw_sign(const Draw& draw, int rank, std::uint64_t index) noexcept {
  return (draw_word(draw, rank, index) >> 63) != 0;
}

/// Bits that are seldom all ones or all zeros after they were anded or ored over all ranks.
std::uint64_t draw_bits(const Draw& draw, int rank, std::uint64_t index) noexcept {
  std::uint64_t bits = draw_word(draw, rank, index);
  if (draw.op != khoroBand && draw.op != khoroBor) return bits;
  for (int ranks = draw.ranks; ranks > 2; ranks /= 2) {
    const std::uint64_t more = mix(bits + static_cast<std::uint64_t>(ranks));
    bits = draw.op == khoroBand ? bits | more : bits & more;
  }
  return bits;
}

template <class T>
T input(const Draw& draw, int rank, std::uint64_t index) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(draw_bits(draw, rank, index));
  } else if (draw.op == khoroProd) {
    const double magnitude = power(draw_exponent<T>(draw, rank, index));
    return from_double<T>(draw_sign(draw, rank, index) ? -magnitude : magnitude);
  } else {
    const std::int64_t multiple = draw_multiple<T>(draw, rank, index);
    const bool selects = draw.op == khoroMin || draw.op == khoroMax;
    // Zeros of both signs and a rare NaN, which sums could not tell from a fault of the fold.
    const std::uint64_t word = draw_word(draw, rank, ~index);
    if (selects && word % 8 == 0) return from_double<T>(word & 8 ? -0.0 : 0.0);
    if (selects && word % 1021 == 0) return from_double<T>(NAN);
    return from_double<T>(static_cast<double>(multiple) * scale<T>);
  }
}

template <class T>
T select(const Draw& draw, std::uint64_t index) noexcept {
  T best = input<T>(draw, 0, index);
  for (int rank = 1; rank < draw.ranks; ++rank) {
    const T next = input<T>(draw, rank, index);
    if constexpr (std::is_integral_v<T>) {
      best = draw.op == khoroMin ? std::min(best, next) : std::max(best, next);
    } else {
      const double a = to_double(best);
      const double b = to_double(next);
      if (std::isnan(a)) return best;
      const bool less = b < a || (b == a && std::signbit(b) && !std::signbit(a));
      if (std::isnan(b) || (draw.op == khoroMin ? less : b != a ? b > a : std::signbit(a)))
        best = next;
    }
  }
  return best;
}

template <class T>
T reduced_integer(const Draw& draw, std::uint64_t index) noexcept {
  Uint128 result = static_cast<Uint128>(input<T>(draw, 0, index));
  for (int rank = 1; rank < draw.ranks; ++rank) {
    const auto next = static_cast<Uint128>(input<T>(draw, rank, index));
    if (draw.op == khoroProd)
      result *= next;
    else if (draw.op == khoroBand)
      result &= next;
    else if (draw.op == khoroBor)
      result |= next;
    else if (draw.op == khoroBxor)
      result ^= next;
    else
      result += next;
  }
  if (draw.op != khoroAvg) return static_cast<T>(result);
  return static_cast<T>(static_cast<Int128>(result) / draw.ranks);
}

template <class T>
T product(const Draw& draw, std::uint64_t index) noexcept {
  int exponent = 0;
  bool negative = false;
  for (int rank = 0; rank < draw.ranks; ++rank) {
    exponent += draw_exponent<T>(draw, rank, index);
    negative ^= draw_sign(draw, rank, index);
  }
  return from_double<T>(negative ? -power(exponent) : power(exponent));
}

template <class T>
T reduced(const Draw& draw, std::uint64_t index) noexcept {
  if (draw.op == khoroMin || draw.op == khoroMax) return select<T>(draw, index);
  if constexpr (std::is_integral_v<T>) {
    return reduced_integer<T>(draw, index);
  } else {
    if (draw.op == khoroProd) return product<T>(draw, index);
    std::int64_t multiple = 0;
    for (int rank = 0; rank < draw.ranks; ++rank) multiple += draw_multiple<T>(draw, rank, index);
    const double sum = static_cast<double>(multiple) * scale<T>;
    if (draw.op != khoroAvg) return from_double<T>(sum);
    if constexpr (std::is_same_v<T, double>)
      return sum / draw.ranks;
    else  // the average is rounded to a float first
      return from_double<T>(static_cast<float>(sum) / static_cast<float>(draw.ranks));
  }
}

template <class T>
bool same(T a, T b) noexcept {
  if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(to_double(a)) && std::isnan(to_double(b))) return true;
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class F>
auto visit(khoroDataType_t type, F&& with) {
  switch (type) {
    case khoroInt8:
      return with(std::int8_t{});
    case khoroUint8:
      return with(std::uint8_t{});
    case khoroInt32:
      return with(std::int32_t{});
    case khoroUint32:
      return with(std::uint32_t{});
    case khoroInt64:
      return with(std::int64_t{});
    case khoroUint64:
      return with(std::uint64_t{});
    case khoroFloat16:
      return with(Half{});
    case khoroFloat64:
      return with(double{});
    case khoroBfloat16:
      return with(Bfloat16{});
    case khoroFloat8e4m3:
      return with(Fp8E4m3{});
    case khoroFloat8e5m2:
      return with(Fp8E5m2{});
    case khoroFloat32:
      break;
  }
  return with(float{});
}

}  // namespace

std::span<const TypeRow> types() noexcept { return type_rows; }
std::span<const OpRow> ops() noexcept { return op_rows; }

bool applies(const OpRow& op, const TypeRow& type) noexcept {
  return !op.integers_only ||
         visit(type.type, [](auto zero) { return std::is_integral_v<decltype(zero)>; });
}

void fill(const Draw& draw, int rank, std::size_t count, void* input_elements) {
  visit(draw.type.type, [&](auto zero) {
    using T = decltype(zero);
    T* elements = static_cast<T*>(input_elements);
    for (std::size_t i = 0; i < count; ++i) elements[i] = input<T>(draw, rank, i);
  });
}

Wrong compare(const Draw& draw, const Origin& origin, const void* output) {
  return visit(draw.type.type, [&](auto zero) {
    using T = decltype(zero);
    const T* elements = static_cast<const T*>(output) + origin.first;
    Wrong wrong;
    for (std::size_t i = 0; i < origin.count; ++i) {
      const std::size_t index = origin.from + i;
      const T expected = origin.rank == Origin::all_ranks ? reduced<T>(draw, index)
                                                          : input<T>(draw, origin.rank, index);
      if (same(elements[i], expected)) continue;
      if (wrong.count++ == 0) wrong.first = origin.first + i;
    }
    return wrong;
  });
}

}  // namespace khoro::benchmark
