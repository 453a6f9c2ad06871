// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "device/fold.h"
#include "support/catch.h"

using namespace khoro;

namespace {

/// Folds the values of one element on every instruction set.
template <class T>
T folded(Dtype dtype, Reduction reduction, const std::vector<T>& values,
         std::uint32_t divisor = 0) {
  std::vector<Operand> operands;
  for (const T& value : values)
    operands.push_back({reinterpret_cast<const std::byte*>(&value), Form::dtype});
  std::vector<T> results;
  for (InstructionSet set : instruction_sets()) {
    T& to = results.emplace_back();
    find_fold(dtype, reduction, set)(reinterpret_cast<std::byte*>(&to), Form::dtype,
                                     operands.data(), operands.size(), 0, 1, divisor, {});
    REQUIRE(to == results.front());
  }
  return results.front();
}

template <class T>
constexpr T most = std::numeric_limits<T>::max();
template <class T>
constexpr T least = std::numeric_limits<T>::min();

}  // namespace

TEST_CASE("sums and products of integers wrap", "[device]") {
  CHECK(folded<std::int8_t>(Dtype::i8, Reduction::sum, {120, 100}) == -36);
  CHECK(folded<std::uint8_t>(Dtype::u8, Reduction::sum, {200, 100}) == 44);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::sum, {most<std::int32_t>, 1}) ==
        least<std::int32_t>);
  CHECK(folded<std::uint32_t>(Dtype::u32, Reduction::sum, {most<std::uint32_t>, 2}) == 1);
  CHECK(folded<std::int64_t>(Dtype::i64, Reduction::sum, {least<std::int64_t>, -1}) ==
        most<std::int64_t>);
  CHECK(folded<std::uint64_t>(Dtype::u64, Reduction::sum, {most<std::uint64_t>, 1, 5}) == 5);

  CHECK(folded<std::uint8_t>(Dtype::u8, Reduction::prod, {16, 17}) == 16);
  CHECK(folded<std::int8_t>(Dtype::i8, Reduction::prod, {-128, -1}) == -128);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::prod, {least<std::int32_t>, -1}) ==
        least<std::int32_t>);
  CHECK(folded<std::uint32_t>(Dtype::u32, Reduction::prod, {0x10001, 0x10001}) == 0x20001);
  CHECK(folded<std::int64_t>(Dtype::i64, Reduction::prod, {most<std::int64_t>, 2}) == -2);
  CHECK(folded<std::uint64_t>(Dtype::u64, Reduction::prod, {most<std::uint64_t>, 3}) ==
        most<std::uint64_t> - 2);
}

TEST_CASE("the order of integers is that of their sign", "[device]") {
  CHECK(folded<std::int8_t>(Dtype::i8, Reduction::min, {-1, 1}) == -1);
  CHECK(folded<std::uint8_t>(Dtype::u8, Reduction::min, {255, 1}) == 1);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::max, {-1, 1}) == 1);
  CHECK(folded<std::uint32_t>(Dtype::u32, Reduction::max, {0xffffffff, 1}) == 0xffffffff);
  CHECK(folded<std::int64_t>(Dtype::i64, Reduction::max, {-1, 1}) == 1);
  CHECK(folded<std::uint64_t>(Dtype::u64, Reduction::max, {most<std::uint64_t>, 1}) ==
        most<std::uint64_t>);
}

TEST_CASE("bits are anded, ored and xored", "[device]") {
  CHECK(folded<std::uint8_t>(Dtype::u8, Reduction::band, {0xfc, 0x3f}) == 0x3c);
  CHECK(folded<std::int8_t>(Dtype::i8, Reduction::bor, {-128, 1}) == -127);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::bxor, {-1, 1}) == -2);
  CHECK(folded<std::uint32_t>(Dtype::u32, Reduction::bxor, {6, 3, 5}) == 0);
  CHECK(folded<std::int64_t>(Dtype::i64, Reduction::band, {-1, least<std::int64_t>}) ==
        least<std::int64_t>);
  CHECK(folded<std::uint64_t>(Dtype::u64, Reduction::bor, {1, 1ULL << 63}) == (1ULL << 63 | 1));
}

TEST_CASE("averages of integers neither overflow nor round away from zero", "[device]") {
  CHECK(folded<std::int8_t>(Dtype::i8, Reduction::avg, {-128, -128, -127}, 3) == -127);
  CHECK(folded<std::int8_t>(Dtype::i8, Reduction::avg, {-4, -3}, 2) == -3);
  CHECK(folded<std::uint8_t>(Dtype::u8, Reduction::avg, {255, 255, 254}, 3) == 254);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::avg, {most<std::int32_t>, 1}, 2) == 1 << 30);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::avg, {-most<std::int32_t>, -5}, 2) ==
        -(1 << 30) - 2);
  CHECK(folded<std::int32_t>(Dtype::i32, Reduction::avg, {-7, 0}, 2) == -3);
  CHECK(folded<std::uint32_t>(Dtype::u32, Reduction::avg, {most<std::uint32_t>, 0}, 2) ==
        most<std::int32_t>);
  CHECK(folded<std::int64_t>(Dtype::i64, Reduction::avg,
                             {least<std::int64_t>, least<std::int64_t>, -7},
                             3) == least<std::int64_t> / 3 * 2 - 3);
  CHECK(folded<std::uint64_t>(Dtype::u64, Reduction::avg,
                              {most<std::uint64_t>, most<std::uint64_t>, 1},
                              2) == most<std::uint64_t>);
}
