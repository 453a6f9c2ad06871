// SPDX-License-Identifier: Apache-2.0
// Averages of integers are divided by multiplying; here with the values that come nearest to
// another quotient.
#include <cfenv>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device/fold.h"
#include "support/catch.h"
#include "support/scalar.h"

using namespace khoro;

namespace {

/// Divides partial results, to partial results.
template <class T>
std::vector<T> divided(Dtype dtype, const std::vector<T>& values, std::uint32_t divisor,
                       InstructionSet set) {
  const Operand operand{reinterpret_cast<const std::byte*>(values.data()), Form::carry};
  std::vector<T> to(values.size());
  find_fold(dtype, Reduction::avg, set)(reinterpret_cast<std::byte*>(to.data()), Form::carry,
                                        &operand, 1, 0, values.size(), divisor, {});
  return to;
}

const std::vector<std::uint32_t> divisors{1,     2,      3,      5,       6,          7,
                                          9,     10,     31,     64,      100,        641,
                                          1000,  4096,   65535,  65536,   65537,      1 << 20,
                                          99991, 262147, 524287, 1 << 30, 0x7ffffffe, 0x7fffffff};

template <class T>
void check(Dtype dtype, const std::vector<T>& values, std::uint32_t divisor) {
  for (InstructionSet set : instruction_sets()) {
    const std::vector<T> got = divided(dtype, values, divisor, set);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (got[i] == values[i] / static_cast<T>(divisor)) continue;
      INFO(find(dtype)->name << ": element " << i << " by " << divisor << " on " << name(set));
      REQUIRE(false);
    }
  }
}

/// Multiples of the divisor and their neighbours, of up to `bits` bits and either sign, and the
/// extremes of that many bits.
template <class T>
std::vector<T> near_multiples(std::uint32_t divisor, int bits, std::mt19937_64& random) {
  using Unsigned = test::UnsignedWide;
  const Unsigned most = ~Unsigned{0} >> (128 - bits);
  std::vector<Unsigned> magnitudes{0, 1, 2, divisor, most, most - 1, most / 2, most / 2 + 1};
  for (int i = 0; i < 700; ++i) {
    const Unsigned drawn = static_cast<Unsigned>(random()) << 64 | random();
    const Unsigned multiple = (drawn >> (128 - bits)) >> random() % static_cast<unsigned>(bits);
    magnitudes.push_back(multiple / divisor * divisor);
  }
  std::vector<T> values;
  for (Unsigned magnitude : magnitudes)
    for (int step : {-1, 0, 1}) {
      const Unsigned value = (magnitude + static_cast<Unsigned>(step)) & most;
      values.push_back(static_cast<T>(value));
      if (static_cast<T>(-1) < 0) values.push_back(static_cast<T>(-value));
    }
  return values;
}

template <class T>
void check_near_multiples(Dtype dtype, std::vector<int> bit_counts) {
  std::mt19937_64 random(7);
  for (std::uint32_t divisor : divisors)
    for (int bits : bit_counts) check(dtype, near_multiples<T>(divisor, bits, random), divisor);
}

}  // namespace

TEST_CASE("quotients of 32 bits are exact next to every multiple", "[device]") {
  check_near_multiples<std::int32_t>(Dtype::i8, {16, 24, 31});
  check_near_multiples<std::uint32_t>(Dtype::u8, {16, 24, 32});
}

TEST_CASE("every sum of bytes has its quotient", "[device]") {
  std::vector<std::int32_t> sums(1 << 17);
  std::vector<std::uint32_t> magnitudes(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = static_cast<std::int32_t>(i) - (1 << 16);
    magnitudes[i] = static_cast<std::uint32_t>(i);
  }
  for (std::uint32_t divisor = 2; divisor <= 64; ++divisor) {
    check(Dtype::i8, sums, divisor);
    check(Dtype::u8, magnitudes, divisor);
  }
}

TEST_CASE("quotients of 64 bits are exact next to every multiple, small and large", "[device]") {
  check_near_multiples<std::int64_t>(Dtype::i32, {33, 40, 49, 50, 51, 63});
  check_near_multiples<std::uint64_t>(Dtype::u32, {33, 40, 49, 50, 51, 64});
}

TEST_CASE("quotients of 128 bits are exact next to every multiple, small and large", "[device]") {
  check_near_multiples<test::Wide>(Dtype::i64, {40, 63, 64, 65, 70, 94, 127});
  check_near_multiples<test::UnsignedWide>(Dtype::u64, {40, 63, 64, 65, 70, 96, 128});
}

TEST_CASE("quotients of integers do not depend on the caller's rounding mode", "[device]") {
  std::mt19937_64 random(8);
  for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    const auto narrow = near_multiples<std::int32_t>(1000, 31, random);
    const auto wide = near_multiples<std::int64_t>(1000, 49, random);
    REQUIRE(std::fesetround(mode) == 0);
    check(Dtype::i8, narrow, 1000);
    check(Dtype::i32, wide, 1000);
    std::fesetround(FE_TONEAREST);
  }
}
