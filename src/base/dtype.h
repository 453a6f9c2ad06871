// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace khoro {

/// Element types; the values are those of `khoroDataType_t`.
enum class Dtype : std::uint8_t { i32 = 2, i64 = 4, f32 = 7, f64 = 8, bf16 = 9 };

/// Reductions; the values are those of `khoroRedOp_t`.
enum class Reduction : std::uint8_t { sum = 0, max = 2, min = 3, avg = 4 };

/// The type in which partial results travel and wait. Beside the element types it may be one that
/// no caller can name.
enum class Carry : std::uint8_t { i32, i64, i128, f32, f64, bf16 };

/// In which of the two types elements are: as the caller holds them, or as partial results travel.
enum class Form : std::uint8_t { dtype, carry };

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::string_view constant;  // as a caller writes it
  std::size_t bytes;
  /// Carry type of sum, min and max, and of avg.
  Carry carry;
  Carry average_carry;
};

struct ReductionRow {
  Reduction reduction;
  std::string_view name;
  std::string_view constant;
};

std::span<const DtypeRow> dtypes() noexcept;
std::span<const ReductionRow> reductions() noexcept;

/// The row of a type, or null when the value names none.
const DtypeRow* find(Dtype dtype) noexcept;
const ReductionRow* find(Reduction reduction) noexcept;

/// Precondition: both have a row.
Carry carry_type(Dtype dtype, Reduction reduction) noexcept;
std::size_t carry_bytes(Carry carry) noexcept;

}  // namespace khoro
