// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include "khoro/khoro.h"
#include "support/catch.h"

using namespace khoro;

TEST_CASE("every dtype and reduction is found under its public value", "[base]") {
  CHECK(find(static_cast<Dtype>(khoroInt32))->name == "i32");
  CHECK(find(static_cast<Dtype>(khoroInt64))->name == "i64");
  CHECK(find(static_cast<Dtype>(khoroFloat32))->name == "f32");
  CHECK(find(static_cast<Dtype>(khoroFloat64))->name == "f64");
  CHECK(find(static_cast<Dtype>(khoroBfloat16))->name == "bf16");
  CHECK(find(static_cast<Reduction>(khoroSum))->name == "sum");
  CHECK(find(static_cast<Reduction>(khoroMax))->name == "max");
  CHECK(find(static_cast<Reduction>(khoroMin))->name == "min");
  CHECK(find(static_cast<Reduction>(khoroAvg))->name == "avg");
  for (int value : {-1, 0, 1, 3, 5, 6, 10, 255, 256})
    CHECK(find(static_cast<Dtype>(value)) == nullptr);
  for (int value : {1, 5, 255}) CHECK(find(static_cast<Reduction>(value)) == nullptr);
}

TEST_CASE("partial results travel in the dtype, and averages in a type they cannot overflow",
          "[base]") {
  for (const DtypeRow& row : dtypes())
    for (Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min})
      CHECK(carry_bytes(carry_type(row.dtype, reduction)) == row.bytes);
  CHECK(carry_type(Dtype::i32, Reduction::avg) == Carry::i64);
  CHECK(carry_type(Dtype::i64, Reduction::avg) == Carry::i128);
  CHECK(carry_type(Dtype::f32, Reduction::avg) == Carry::f32);
  CHECK(carry_type(Dtype::f64, Reduction::avg) == Carry::f64);
  CHECK(carry_type(Dtype::bf16, Reduction::avg) == Carry::f32);
  CHECK(carry_bytes(Carry::i128) == 16);
}
