// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>

namespace khoro {
namespace {

constexpr std::array dtype_rows{
    DtypeRow{Dtype::i8, "i8", "khoroInt8", 1, true, Carry::i8, Carry::i32},
    DtypeRow{Dtype::u8, "u8", "khoroUint8", 1, true, Carry::u8, Carry::u32},
    DtypeRow{Dtype::i32, "i32", "khoroInt32", 4, true, Carry::i32, Carry::i64},
    DtypeRow{Dtype::u32, "u32", "khoroUint32", 4, true, Carry::u32, Carry::u64},
    DtypeRow{Dtype::i64, "i64", "khoroInt64", 8, true, Carry::i64, Carry::i128},
    DtypeRow{Dtype::u64, "u64", "khoroUint64", 8, true, Carry::u64, Carry::u128},
    DtypeRow{Dtype::f16, "f16", "khoroFloat16", 2, false, Carry::f16, Carry::f32},
    DtypeRow{Dtype::f32, "f32", "khoroFloat32", 4, false, Carry::f32, Carry::f32},
    DtypeRow{Dtype::f64, "f64", "khoroFloat64", 8, false, Carry::f64, Carry::f64},
    DtypeRow{Dtype::bf16, "bf16", "khoroBfloat16", 2, false, Carry::bf16, Carry::f32},
    DtypeRow{Dtype::f8e4m3, "f8e4m3", "khoroFloat8e4m3", 1, false, Carry::f32, Carry::f32},
    DtypeRow{Dtype::f8e5m2, "f8e5m2", "khoroFloat8e5m2", 1, false, Carry::f32, Carry::f32},
};

constexpr std::array reduction_rows{
    ReductionRow{Reduction::sum, "sum", "khoroSum", false, true},
    ReductionRow{Reduction::prod, "prod", "khoroProd", false, true},
    ReductionRow{Reduction::max, "max", "khoroMax", false, false},
    ReductionRow{Reduction::min, "min", "khoroMin", false, false},
    ReductionRow{Reduction::avg, "avg", "khoroAvg", false, true},
    ReductionRow{Reduction::band, "band", "khoroBand", true, false},
    ReductionRow{Reduction::bor, "bor", "khoroBor", true, false},
    ReductionRow{Reduction::bxor, "bxor", "khoroBxor", true, false},
};

constexpr std::array made_rows{
    ReductionRow{Reduction::premul, "premul", "premul sum", false, true},
    ReductionRow{Reduction::user, "user", "user reduction", false, false},
};

}  // namespace

std::span<const DtypeRow> dtypes() noexcept { return dtype_rows; }
std::span<const ReductionRow> reductions() noexcept { return reduction_rows; }

const DtypeRow* find(Dtype dtype) noexcept {
  for (const DtypeRow& row : dtype_rows)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

const ReductionRow* find(Reduction reduction) noexcept {
  for (const ReductionRow& row : reduction_rows)
    if (row.reduction == reduction) return &row;
  for (const ReductionRow& row : made_rows)
    if (row.reduction == reduction) return &row;
  return nullptr;
}

bool applies(Reduction reduction, Dtype dtype) noexcept {
  return find(dtype)->integer || !find(reduction)->integers_only;
}

Carry carry_type(Dtype dtype, Reduction reduction, Partials partials) noexcept {
  const DtypeRow* row = find(dtype);
  // Of floats the carry type of avg is that in which they are folded.
  const bool widened = partials == Partials::f32 && !row->integer && find(reduction)->rounds;
  return reduction == Reduction::avg || widened ? row->average_carry : row->carry;
}

std::size_t carry_bytes(Carry carry) noexcept {
  switch (carry) {
    case Carry::i8:
    case Carry::u8:
      return 1;
    case Carry::f16:
    case Carry::bf16:
      return 2;
    case Carry::i32:
    case Carry::u32:
    case Carry::f32:
      return 4;
    case Carry::i64:
    case Carry::u64:
    case Carry::f64:
      return 8;
    case Carry::i128:
    case Carry::u128:
      return 16;
  }
  return 0;
}

Form carry_form(Dtype dtype, Reduction reduction, Partials partials) noexcept {
  // A carry type that is not the dtype is wider.
  const bool same = carry_bytes(carry_type(dtype, reduction, partials)) == find(dtype)->bytes;
  return same ? Form::dtype : Form::carry;
}

}  // namespace khoro
