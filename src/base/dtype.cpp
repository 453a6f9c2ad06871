// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>

namespace khoro {
namespace {

constexpr std::array dtype_rows{
    DtypeRow{Dtype::i32, "i32", "khoroInt32", 4, Carry::i32, Carry::i64},
    DtypeRow{Dtype::i64, "i64", "khoroInt64", 8, Carry::i64, Carry::i128},
    DtypeRow{Dtype::f32, "f32", "khoroFloat32", 4, Carry::f32, Carry::f32},
    DtypeRow{Dtype::f64, "f64", "khoroFloat64", 8, Carry::f64, Carry::f64},
    DtypeRow{Dtype::bf16, "bf16", "khoroBfloat16", 2, Carry::bf16, Carry::f32},
};

constexpr std::array reduction_rows{
    ReductionRow{Reduction::sum, "sum", "khoroSum"},
    ReductionRow{Reduction::max, "max", "khoroMax"},
    ReductionRow{Reduction::min, "min", "khoroMin"},
    ReductionRow{Reduction::avg, "avg", "khoroAvg"},
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
  return nullptr;
}

Carry carry_type(Dtype dtype, Reduction reduction) noexcept {
  const DtypeRow* row = find(dtype);
  return reduction == Reduction::avg ? row->average_carry : row->carry;
}

std::size_t carry_bytes(Carry carry) noexcept {
  switch (carry) {
    case Carry::bf16:
      return 2;
    case Carry::i32:
    case Carry::f32:
      return 4;
    case Carry::i64:
    case Carry::f64:
      return 8;
    case Carry::i128:
      return 16;
  }
  return 0;
}

}  // namespace khoro
