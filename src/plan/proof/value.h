// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace khoro::proof {

/// What one chunk of a buffer or a message holds, as far as a proof must know.
///
/// `sum` is a random linear combination modulo 2^61-1: each (rank, input chunk) has a number of its
/// own, a reduction adds. It tells which contributions are inside and how often; floats do not
/// commute as sums do, so `order` is the hash of the fold tree with its rounding points.
struct Value {
  std::uint64_t sum = 0;
  std::uint64_t order = 0;
  std::int32_t chunk = -1;  // of the inputs: what this is a value of
  bool defined = false;     // of memory: something has been written here
  bool carry = false;       // in the carry type, not yet rounded to the dtype
  bool scaled = false;
};

inline constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;

constexpr std::uint64_t modulo(std::uint64_t x) noexcept {
  x = (x & prime) + (x >> 61);
  return x >= prime ? x - prime : x;
}
constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return modulo((static_cast<std::uint64_t>(product) & prime) +
                static_cast<std::uint64_t>(product >> 61));
}

// Spice of the hashes, so that no two kinds of thing hash alike.
inline constexpr std::uint64_t scale_spice = 0x5ca1e;
inline constexpr std::uint64_t premul_spice = 0x93e1;
inline constexpr std::uint64_t carry_spice = 0xca22e;
inline constexpr std::uint64_t dtype_spice = 0xd79e;

inline constexpr std::uint64_t scale_factor = modulo(mix(scale_spice));
constexpr std::uint64_t premul_factor(int rank) noexcept {
  return modulo(mix(mix(premul_spice) + static_cast<std::uint64_t>(rank)));
}

/// What the input of a rank holds at the start.
constexpr Value contribution(int rank, std::int32_t chunk) noexcept {
  const std::uint64_t random = mix(static_cast<std::uint64_t>(rank) << 32 |
                                   static_cast<std::uint64_t>(static_cast<std::uint32_t>(chunk)));
  return {modulo(random), random * 0x9e3779b97f4a7c15u, chunk, true, false, false};
}

/// `left op right`, in the accumulator.
constexpr void fold(Value& left, const Value& right) noexcept {
  left.sum = modulo(left.sum + right.sum);
  left.order = combine(left.order, right.order);
  left.carry = true;
  left.scaled = left.scaled || right.scaled;
}
constexpr void scale(Value& value) noexcept {
  value.sum = times(value.sum, scale_factor);
  value.order = mix(value.order ^ scale_spice);
  value.carry = value.scaled = true;
}
constexpr void premultiply(Value& value, int rank) noexcept {
  value.sum = times(value.sum, premul_factor(rank));
  value.order = mix(value.order ^ premul_spice);
  value.carry = true;
}
/// Of an accumulator that is stored or sent, unless partial results are of its own type. Values
/// already rounded do not change in the carry type, which holds every value of the dtype.
constexpr void round_to_carry(Value& value) noexcept {
  value.order = mix(value.order ^ carry_spice);
}
/// Of a value that is written to an output. It is the same whether it was rounded to the carry type
/// before or comes here from the accumulator: of these two types one is always the accumulator's
/// or the dtype.
constexpr void round_to_dtype(Value& value) noexcept {
  if (!value.carry) return;
  value.order = mix(value.order ^ dtype_spice);
  value.carry = false;
}

}  // namespace khoro::proof
