// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace khoro {

/// Element types; the values are those of `khoroDataType_t`.
enum class Dtype : std::uint8_t {
  i8 = 0,
  u8 = 1,
  i32 = 2,
  u32 = 3,
  i64 = 4,
  u64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  f8e4m3 = 10,
  f8e5m2 = 11
};

/// Reductions; the values are those of `khoroRedOp_t`, but for the last two, whose numbers there
/// are given when they are made: the sum of contributions each times a factor of its rank's, and a
/// function of the caller's. The three before them work on the bits of integers.
enum class Reduction : std::uint8_t {
  sum = 0,
  prod = 1,
  max = 2,
  min = 3,
  avg = 4,
  band = 16,
  bor = 17,
  bxor = 18,
  premul = 32,
  user = 33
};

/// The type in which partial results travel and wait. Beside the element types it may be one that
/// no caller can name.
enum class Carry : std::uint8_t { i8, u8, i32, u32, i64, u64, i128, u128, f16, bf16, f32, f64 };

/// In which type the partial sums and products of 16-bit floats travel and wait.
enum class Partials : std::uint8_t { dtype, f32 };

/// In which of the two types elements are: as the caller holds them, or as partial results travel.
enum class Form : std::uint8_t { dtype, carry };

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::string_view constant;  // as a caller writes it
  std::size_t bytes;
  bool integer;
  /// Carry type of avg, and before it of every other reduction.
  Carry carry;
  Carry average_carry;
};

struct ReductionRow {
  Reduction reduction;
  std::string_view name;
  std::string_view constant;
  bool integers_only;
  /// Two numbers may give one that has to be rounded.
  bool rounds;
};

std::span<const DtypeRow> dtypes() noexcept;
/// Those that need not be made.
std::span<const ReductionRow> reductions() noexcept;

/// The row of a type, or null when the value names none.
const DtypeRow* find(Dtype dtype) noexcept;
const ReductionRow* find(Reduction reduction) noexcept;

/// Below, both have a row, and carry types are not of Reduction::user, which has none but the
/// dtype.
bool applies(Reduction reduction, Dtype dtype) noexcept;
Carry carry_type(Dtype dtype, Reduction reduction, Partials partials = Partials::dtype) noexcept;
std::size_t carry_bytes(Carry carry) noexcept;
/// Form::dtype where the carry type is the dtype itself.
Form carry_form(Dtype dtype, Reduction reduction, Partials partials = Partials::dtype) noexcept;

}  // namespace khoro
