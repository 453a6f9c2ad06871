// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace khoro::benchmark {
namespace {

__extension__ using Int128 = __int128;

constexpr TypeRow type_rows[] = {{"int32", khoroInt32, 4},
                                 {"int64", khoroInt64, 8},
                                 {"float", khoroFloat32, 4},
                                 {"double", khoroFloat64, 8},
                                 {"bfloat16", khoroBfloat16, 2}};

constexpr OpRow op_rows[] = {
    {"sum", khoroSum}, {"max", khoroMax}, {"min", khoroMin}, {"avg", khoroAvg}};

struct Bfloat16 {
  std::uint16_t bits;
};

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

/// Integers of a float type are exact up to two to this power.
template <class T>
constexpr int exact_bits = std::is_same_v<T, double>  ? 53
                           : std::is_same_v<T, float> ? 24
                                                      : 8;
template <class T>
constexpr double scale = std::is_same_v<T, Bfloat16> ? 1.0 / 16 : 1.0 / 1024;

/// The input is this times the scale. The sum of the magnitudes over all ranks stays exact.
template <class T>
std::int64_t draw_multiple(const Draw& draw, int rank, std::uint64_t index) noexcept {
  const std::uint64_t word = draw_word(draw, rank, index);
  const auto ranks = static_cast<std::uint64_t>(draw.ranks);
  const std::uint64_t limit = std::bit_floor((1ULL << exact_bits<T>) / ranks);
  if (limit == 0) {  // more ranks than units: most of them add nothing
    const std::uint64_t groups = ranks / (1ULL << exact_bits<T>)+1;
    const bool counts = (static_cast<std::uint64_t>(rank) + index) % groups == 0;
    return counts ? static_cast<std::int64_t>(word & 1) : 0;
  }
  return static_cast<std::int64_t>(word & (2 * limit - 1)) - static_cast<std::int64_t>(limit);
}

template <class T>
T from_float(float value) noexcept {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    if (std::isnan(value)) return {0x7fc0};
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
T from_double(double value) noexcept {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

template <class T>
double to_double(T value) noexcept {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
  } else {
    return value;
  }
}

template <class T>
T input(const Draw& draw, int rank, std::uint64_t index) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(draw_word(draw, rank, index));
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
T reduced(const Draw& draw, std::uint64_t index) noexcept {
  if (draw.op == khoroMin || draw.op == khoroMax) return select<T>(draw, index);
  const bool average = draw.op == khoroAvg;
  if constexpr (std::is_integral_v<T>) {
    Int128 sum = 0;
    for (int rank = 0; rank < draw.ranks; ++rank) sum += input<T>(draw, rank, index);
    return static_cast<T>(average ? sum / draw.ranks : sum);
  } else {
    std::int64_t multiple = 0;
    for (int rank = 0; rank < draw.ranks; ++rank) multiple += draw_multiple<T>(draw, rank, index);
    const double sum = static_cast<double>(multiple) * scale<T>;
    if (!average) return from_double<T>(sum);
    if constexpr (std::is_same_v<T, double>) return sum / draw.ranks;
    return from_float<T>(static_cast<float>(sum) / static_cast<float>(draw.ranks));
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
    case khoroInt32:
      return with(std::int32_t{});
    case khoroInt64:
      return with(std::int64_t{});
    case khoroFloat64:
      return with(double{});
    case khoroBfloat16:
      return with(Bfloat16{});
    default:
      return with(float{});
  }
}

}  // namespace

std::span<const TypeRow> types() noexcept { return type_rows; }
std::span<const OpRow> ops() noexcept { return op_rows; }

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
