// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include "khoro/khoro.h"
#include "support/catch.h"

using namespace khoro;

TEST_CASE("every dtype and reduction is found under its public value", "[base]") {
  CHECK(find(static_cast<Dtype>(khoroInt8))->name == "i8");
  CHECK(find(static_cast<Dtype>(khoroUint8))->name == "u8");
  CHECK(find(static_cast<Dtype>(khoroInt32))->name == "i32");
  CHECK(find(static_cast<Dtype>(khoroUint32))->name == "u32");
  CHECK(find(static_cast<Dtype>(khoroInt64))->name == "i64");
  CHECK(find(static_cast<Dtype>(khoroUint64))->name == "u64");
  CHECK(find(static_cast<Dtype>(khoroFloat16))->name == "f16");
  CHECK(find(static_cast<Dtype>(khoroFloat32))->name == "f32");
  CHECK(find(static_cast<Dtype>(khoroFloat64))->name == "f64");
  CHECK(find(static_cast<Dtype>(khoroBfloat16))->name == "bf16");
  CHECK(find(static_cast<Dtype>(khoroFloat8e4m3))->name == "f8e4m3");
  CHECK(find(static_cast<Dtype>(khoroFloat8e5m2))->name == "f8e5m2");
  CHECK(find(static_cast<Reduction>(khoroSum))->name == "sum");
  CHECK(find(static_cast<Reduction>(khoroProd))->name == "prod");
  CHECK(find(static_cast<Reduction>(khoroMax))->name == "max");
  CHECK(find(static_cast<Reduction>(khoroMin))->name == "min");
  CHECK(find(static_cast<Reduction>(khoroAvg))->name == "avg");
  CHECK(find(static_cast<Reduction>(khoroBand))->name == "band");
  CHECK(find(static_cast<Reduction>(khoroBor))->name == "bor");
  CHECK(find(static_cast<Reduction>(khoroBxor))->name == "bxor");
  CHECK(dtypes().size() == 12);
  CHECK(reductions().size() == 8);
  for (int value : {-1, 12, 255}) CHECK(find(static_cast<Dtype>(value)) == nullptr);
  for (int value : {5, 15, 19, 255}) CHECK(find(static_cast<Reduction>(value)) == nullptr);
}

TEST_CASE("the bits of floats are not reduced, everything else is", "[base]") {
  for (const DtypeRow& row : dtypes()) {
    for (Reduction reduction :
         {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min, Reduction::avg})
      CHECK(applies(reduction, row.dtype));
    for (Reduction reduction : {Reduction::band, Reduction::bor, Reduction::bxor})
      CHECK(applies(reduction, row.dtype) == (row.name[0] == 'i' || row.name[0] == 'u'));
  }
}

TEST_CASE("partial results travel in the dtype, those of 8-bit floats in f32", "[base]") {
  for (const DtypeRow& row : dtypes())
    for (const ReductionRow& reduction : reductions()) {
      if (reduction.reduction == Reduction::avg) continue;
      const bool f8 = row.name.substr(0, 2) == "f8";
      CHECK(carry_form(row.dtype, reduction.reduction) == (f8 ? Form::carry : Form::dtype));
      CHECK(carry_bytes(carry_type(row.dtype, reduction.reduction)) == (f8 ? 4 : row.bytes));
      if (f8) CHECK(carry_type(row.dtype, reduction.reduction) == Carry::f32);
    }
}

TEST_CASE("averages travel in a type that they cannot overflow", "[base]") {
  CHECK(carry_type(Dtype::i8, Reduction::avg) == Carry::i32);
  CHECK(carry_type(Dtype::u8, Reduction::avg) == Carry::u32);
  CHECK(carry_type(Dtype::i32, Reduction::avg) == Carry::i64);
  CHECK(carry_type(Dtype::u32, Reduction::avg) == Carry::u64);
  CHECK(carry_type(Dtype::i64, Reduction::avg) == Carry::i128);
  CHECK(carry_type(Dtype::u64, Reduction::avg) == Carry::u128);
  for (Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f8e4m3, Dtype::f8e5m2})
    CHECK(carry_type(dtype, Reduction::avg) == Carry::f32);
  CHECK(carry_type(Dtype::f64, Reduction::avg) == Carry::f64);
  for (Dtype dtype : {Dtype::f32, Dtype::f64})
    CHECK(carry_form(dtype, Reduction::avg) == Form::dtype);
  CHECK(carry_form(Dtype::i64, Reduction::avg) == Form::carry);
  CHECK(carry_bytes(Carry::i128) == 16);
}

TEST_CASE("partial sums and products of 16-bit floats travel in f32 where that is chosen",
          "[base]") {
  for (const DtypeRow& row : dtypes())
    for (const ReductionRow& reduction : reductions()) {
      const Carry before = carry_type(row.dtype, reduction.reduction);
      const Carry chosen = carry_type(row.dtype, reduction.reduction, Partials::f32);
      const bool wider =
          (row.dtype == Dtype::f16 || row.dtype == Dtype::bf16) &&
          (reduction.reduction == Reduction::sum || reduction.reduction == Reduction::prod);
      CHECK(chosen == (wider ? Carry::f32 : before));
      if (wider) CHECK(carry_form(row.dtype, reduction.reduction, Partials::f32) == Form::carry);
    }
}
